"""Formats of files with the positions of sprites in a sheet, one plug-in file for each. Start with base.py."""
