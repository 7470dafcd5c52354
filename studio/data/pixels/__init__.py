"""Edit single sprites: the editor's document (editing.py) and corner tile sets (corner_tiles.py)."""
