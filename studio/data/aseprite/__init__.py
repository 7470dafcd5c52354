"""Read .ase and .aseprite files: chunks, cels, layers, tilemaps and palettes.

file.py parses a file, frames.py renders its frames, blend.py has Aseprite's blend modes.
"""
