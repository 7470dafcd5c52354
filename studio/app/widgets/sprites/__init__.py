"""Views of sprites: grid, filmstrip, map, predictions. Start with grid.py."""
