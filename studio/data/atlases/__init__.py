"""Atlas formats: files that describe where the sprites in a sheet lie. Each format is a plug-in of one file.

Start with base.py; json_frames.py is the most common format.
"""
