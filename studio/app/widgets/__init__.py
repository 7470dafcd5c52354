"""Reusable widgets that know nothing of training. factory.py makes labels, buttons and layouts for all pages."""
