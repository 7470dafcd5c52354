"""Experiments on training, with the user's own sprites and devices. Each experiment is a plug-in of one file.

Start with experiments/base.py. running.py runs an experiment in a child process, so that it can be killed.
"""
