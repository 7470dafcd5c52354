"""Watch and control a running training, from the same process or from another.

control.py has the flags that a training polls. Other processes write requests into the run folder (protocol.py), which
server.py executes; watcher.py follows a run by its files.
"""
