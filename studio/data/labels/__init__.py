"""Labels and numbers for sprites from tables beside them (CSV, JSON Lines). Start with labelling.py."""
