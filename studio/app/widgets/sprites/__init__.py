"""Grids, lists and strips of sprites, drawn crisp at whole-number zooms. Start with grid.py."""
