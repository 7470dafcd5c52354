"""Recognise sprite sheets and slice them into cells.

recognising.py decides whether a picture is a sheet, grids.py proposes a grid, slicing.py cuts.
"""
