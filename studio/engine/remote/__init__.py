"""Train a run on another machine over ssh and rsync.

training.py drives the remote training, ssh.py runs commands there, marker.py marks the run's local folder.
"""
