"""Plots on pyqtgraph: the loss plot, curves over time, scatter plots. canvas.py is their common base."""
