"""The list of runs (runs.py) and their disk space (disk_space.py)."""
