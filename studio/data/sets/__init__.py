"""Recognise sets: the sprites of a set show a character's views and frames (cells).

Start with layout.py, the result, then recognising.py, which chooses the kind of naming. Names of files, folders, frames
and tiles tell a sprite's set and cell, or a sets.csv does. Pixels don't matter.
"""
