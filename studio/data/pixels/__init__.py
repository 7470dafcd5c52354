"""Edit single sprites: the editor's document (editing.py)."""
