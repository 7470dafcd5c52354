"""File formats for sprites and tile sets: PNG, GIF, APNG, Aseprite, Godot, Tiled, LDtk. Each format is a plug-in."""
