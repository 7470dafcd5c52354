"""State of the open sprites (sprites.py), sheets to slice, and palettes."""
