"""The four pages of the window."""
