"""Measure the disk space of runs (disk_use.py) and delete what is no longer needed (free_space.py)."""
