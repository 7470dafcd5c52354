"""The Lab page: experiments (page.py), their results (result_view.py), and the map of sprites (map_page.py)."""
