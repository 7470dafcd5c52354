"""The state of the application. The Session owns all of it; pages read it and call its methods.

Start with session.py. State changes on events of jobs and announces each change by a signal.
"""
