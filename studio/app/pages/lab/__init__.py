"""The Lab page: experiments (page.py), their findings, and the map of the sprites (map_page.py)."""
