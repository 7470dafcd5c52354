"""Recognise sets: sprites that are the views and frames (cells) of one character.

Start with layout.py, the result, then recognising.py, which chooses the kind of naming. No pixels are compared: names
of files, folders, frames and tiles tell a sprite's set and cell, or a sets.csv does.
"""
