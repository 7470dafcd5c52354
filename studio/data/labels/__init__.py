"""Classes and numbers from labels.csv files.

csv_rows.py reads the rows of a CSV, table.py parses a labels.csv, and lookup.py finds a sprite's row in all files.
"""
