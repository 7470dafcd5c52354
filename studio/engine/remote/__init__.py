"""Train a run on another machine over ssh and rsync.

training.py drives the remote training, ssh.py runs the commands, marker.py marks a run folder that trains remotely.
"""
