"""Palette file formats, one plug-in per file. files.py loads and saves palettes, base.py has the plug-in base."""
