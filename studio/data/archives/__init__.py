"""Zip archives read as if they were folders, within bounds, and never unpacked onto the disk."""
