"""Plug-ins of a package outside the studio: a recipe, a format for models and a kind of input, one file each."""
