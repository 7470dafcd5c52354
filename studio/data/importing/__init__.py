"""Import files and folders as Sprites: find, read in worker processes, slice sheets, assemble, check.

Start with importing.py, the whole pipeline. single_sprite.py and sheet_preview.py read one picture alone.
"""
