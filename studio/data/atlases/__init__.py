"""File formats that list the sprites of a sheet with their positions. Each format is a plug-in. Start with base.py."""
