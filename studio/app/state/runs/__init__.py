"""The list of runs and their trash (runs.py), and their disk space (disk_space.py)."""
