"""Experiments on training, with the user's own sprites and devices. Each experiment is a one-file plug-in.

Start with experiments/base.py. running.py runs an experiment in a child process, to kill it at any time.
"""
