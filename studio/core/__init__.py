"""Plain Python for every other package: settings, events, errors, files and paths.

Start with config.py (how to declare a setting) and events.py (how long work reports its progress).
"""
