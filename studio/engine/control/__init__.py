"""Watch and control a running training, from this process or another.

control.py has the flags that a training polls. Other processes write requests to the run folder (protocol.py), and
server.py executes the requests; watcher.py follows a run by its files.
"""
