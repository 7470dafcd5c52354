"""Detect sprite sheets and slice them into sprites.

recognising.py detects sheets, grids.py proposes grids, slicing.py slices, described.py uses description files.
"""
