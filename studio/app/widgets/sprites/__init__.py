"""Sprites on the screen, at whole-number zoom: grids of up to a million, a filmstrip, predictions.

In come uint8 arrays [N, S, S, 4], which must not change afterwards; they are not copied.
"""
