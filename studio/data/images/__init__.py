"""Decode picture files to RGBA pixels, including animations, and fit sprites to a canvas.

A damaged file raises UnreadableFile; smaller problems become a SourceIssue.
"""
