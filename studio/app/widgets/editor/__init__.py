"""The sprite editor: canvas, tools and previews. Start with editor.py."""
