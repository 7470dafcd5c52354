"""File formats of drawn sprites: PNG sheets, GIF, APNG, Aseprite, Godot. Each format is a plug-in of one file."""
