"""Aseprite files (.ase, .aseprite) -> frames as RGBA pixels, drawn as Aseprite draws them."""
