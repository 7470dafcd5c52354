"""File formats for sprites: PNG sheets, GIF, APNG, Aseprite, Godot. Each format is a plug-in in a single module."""
