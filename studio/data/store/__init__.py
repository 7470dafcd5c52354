"""Sprites and their pixels on the disk: packed files, the cache of imports, scratch files."""
