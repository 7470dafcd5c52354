"""State of model use: generating and exporting (inference.py), the editor, kept sprites, the map of sprites."""
