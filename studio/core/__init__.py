"""Plain Python that every other package may import: settings, events, errors, files and paths. No torch, no Qt.

Start with config.py (how a setting is declared) and events.py (how long work reports its progress).
"""
