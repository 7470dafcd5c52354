"""Sources: one plug-in for each input format, which reads the images of a file. Start with base.py."""
