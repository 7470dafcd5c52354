"""Classes and numbers from labels.csv files: table.py parses a file, lookup.py finds a sprite's row in all files."""
