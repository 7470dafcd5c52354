"""Read .ase and .aseprite files: chunks, cels, layers, tilemaps and palettes.

file.py parses the format, frames.py paints its frames, blend.py has Aseprite's blend modes.
"""
