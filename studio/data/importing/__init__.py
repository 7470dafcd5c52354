"""Import files and folders as Sprites: find, read, slice sheets, assemble, cache, fix and report.

Start with importing.py, the whole pipeline. single_sprite.py and sheet_preview.py read one image alone.
"""
