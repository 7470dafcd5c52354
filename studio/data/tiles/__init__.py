"""Tile sets: tiles with the terrains that their neighbours must show. Start reading with tile_set.py."""
