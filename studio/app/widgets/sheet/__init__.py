"""A sprite sheet with the lines along which it is sliced. Start with area.py."""
