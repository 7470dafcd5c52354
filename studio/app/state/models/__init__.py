"""State of model use: requests (inference.py), saving, the editor, kept sprites, the map of sprites."""
