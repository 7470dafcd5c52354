"""The window: the only package that imports Qt. It draws on engine events and holds no training code.

Start with application.py, which connects session and window, then state/session.py and one of pages/.
"""
