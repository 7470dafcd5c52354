"""Palettes and colours: extract, count, snap, recolour, and read pixels at their true size.

Start with palette.py. constraints.py holds drawing rules such as symmetry and outlines.
"""
