"""The list of runs and their trash (runs.py), their notes (notes.py), and their disk space (disk_space.py)."""
