"""The Sprites page: opening sprites, looking them over, cutting sheets, mending what the doctor found."""
