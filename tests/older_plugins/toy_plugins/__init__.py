"""Plug-ins of a package outside the studio: a recipe, formats for models and sprites, a kind of input."""
