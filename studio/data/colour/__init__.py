"""Palettes and colours: extract and count colours, map sprites to a palette, convert drawings to pixel art.

Start with palette.py. constraints.py holds drawing constraints such as symmetry and outlines.
"""
