"""Source files to import, and scratch space for decoded pixels. Start with source_files.py."""
