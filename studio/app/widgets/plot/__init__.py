"""Plots over steps that stay fluent at a million points. Importing any that draws imports pyqtgraph (0.4 s)."""
