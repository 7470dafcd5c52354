"""Atlas formats: description files with the positions of sprites in a sheet. Every format is a plug-in file.

Start with base.py; json_frames.py reads the most common format.
"""
