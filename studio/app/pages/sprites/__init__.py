"""The Sprites page: the grid, the doctor, the palette and the slicing of sheets. Start with page.py."""
