"""Measure how good a model is: features, scores, copies, outliers. Start with evaluate.py, the report on a run."""
