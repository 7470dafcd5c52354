"""Palette file formats: each format is a plug-in in its own file. files.py selects a format, base.py is their base."""
