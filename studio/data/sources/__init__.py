"""Sources: a plug-in per input format that reads images from a file. Start with base.py."""
