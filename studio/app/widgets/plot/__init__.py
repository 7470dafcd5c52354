"""Plots drawn with pyqtgraph: curves over steps (time_plot.py), scatter and XY plots. Start with time_plot.py."""
