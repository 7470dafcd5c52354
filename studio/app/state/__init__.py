"""The state of the application, owned by the Session. Pages read the state and call its methods.

Start with session.py. Job events change the state, and signals announce each change.
"""
