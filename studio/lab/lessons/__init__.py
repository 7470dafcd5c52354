"""The lessons of the Lab. Each is a one-file plug-in: a question, a prediction, a measurement and an exercise.

Start with base.py.
"""
