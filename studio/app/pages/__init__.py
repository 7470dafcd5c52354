"""The window's five pages, a package each. A page shows a part of the Session and calls its methods.

Start with train/page.py.
"""
