"""Measure how good a model is: features, scores, near copies of training sprites, outliers.

evaluate.py is the report on a run; features.py trains the small network whose features the scores compare.
"""
