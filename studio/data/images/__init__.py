"""Decode picture files to RGBA pixels, including animations, and fit sprites to a canvas."""
