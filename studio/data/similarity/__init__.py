"""Near duplicates among sprites, and groups that must stay on one side of a split. Start with groups.py."""
