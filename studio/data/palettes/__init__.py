"""Palette file formats. Each format is a plug-in of one file; files.py chooses among them, base.py is their base."""
