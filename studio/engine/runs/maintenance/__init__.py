"""Measure the disk space of runs (disk_use.py) and delete unneeded files (free_space.py)."""
