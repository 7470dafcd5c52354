"""The pixel editor: tools and swatches (editor.py), the canvas, and previews. Start with editor.py."""
