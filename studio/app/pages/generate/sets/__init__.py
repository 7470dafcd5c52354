"""The Generate page of a model of sets: given cells, candidates, a player and a cell editor. Start with view.py."""
