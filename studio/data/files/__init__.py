"""Source files: their names, their bytes, and scratch space for decoded pixels. Start with source_files.py."""
