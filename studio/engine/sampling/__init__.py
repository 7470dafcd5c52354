"""Use trained models: generate sprites, predict classes, edit sprites, distil a few-step student.

Start with generate.py.
"""
