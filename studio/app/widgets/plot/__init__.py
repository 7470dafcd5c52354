"""Plots over steps that stay fluent at a million points; values come in as arrays.

Importing any module that draws imports pyqtgraph (0.4 s).
"""
