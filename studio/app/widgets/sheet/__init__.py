"""A sprite sheet with its slicing grid. Start with area.py."""
