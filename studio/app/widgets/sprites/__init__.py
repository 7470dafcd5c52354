"""Sprites on the screen, by whole-number zoom: grids of up to a million, a filmstrip, predictions."""
