"""The four pages and the export dialog: they read the session and call it."""
