"""Sprite Training Studio: train small models on pixel art, in a window or from the command line."""

from studio.core import former_names

__version__ = "0.2.0"

former_names.install()
