"""The list of runs with the trash (runs.py), notes on runs (notes.py), and disk space (disk_space.py)."""
