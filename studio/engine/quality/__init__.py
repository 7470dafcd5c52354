"""Measure how good a model is: features, scores, copies of training sprites, outliers.

Start with evaluate.py, the report on a run. features.py trains the small network whose features the scores compare.
"""
