"""Classes and numbers of sprites from labels.csv files.

table.py parses a file, lookup.py finds the row of a sprite in all files of an import.
"""
