"""The list of runs (runs.py), their disk space (disk_space.py), and the way to the trash and back (trash.py)."""
