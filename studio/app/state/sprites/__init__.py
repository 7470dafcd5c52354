"""State of the open sprites (sprites.py), the doctor's findings, sheets to slice, and palettes."""
