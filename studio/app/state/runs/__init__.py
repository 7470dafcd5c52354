"""State of the runs: the list of all runs (runs.py) and their disk space (disk_space.py)."""
