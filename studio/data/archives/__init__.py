"""Read zip archives like folders, without unpacking them to the disk. Start with zip_archive.py."""
