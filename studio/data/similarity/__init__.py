"""Find near duplicates among sprites, and group sprites that must stay on one side of a split. Start with groups.py."""
