"""Palettes, distances between colours, and sprites brought into fewer of them."""
