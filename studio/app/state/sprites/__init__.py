"""State of the open sprites (sprites.py), sheets to slice, palettes, and files dragged into other programs."""
