"""Sprite Training Studio: train small models on pixel art, in a window or from the command line."""

__version__ = "0.1.0"
