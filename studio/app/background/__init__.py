"""Work beside the window: the worker threads that drive jobs, the queue in front of them, and the jobs themselves.

In come generators of events; out go the events, in the main thread. No widget is known here.
"""
