"""Read ZIP archives as if they were folders. Start with zip_archive.py."""
