"""Atlas formats: files that say where the sprites of a sheet are. Each format is a plug-in of one file.

Start with base.py; json_frames.py is the most common format.
"""
