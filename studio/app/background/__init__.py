"""Work beside the window: the one thread that drives jobs, the queue in front of it, and what jobs say.

In come generators of events; out go signals in the main thread. No widget is known here.
"""
