"""The lessons of the Lab. Each is a plug-in of one file: a question, a prediction, a measurement and an exercise.

Start with base.py.
"""
