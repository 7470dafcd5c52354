"""Everything that needs torch: train, draw, measure and export models. No Qt.

Start with training/loop.py, the training loop from top to bottom, then steps/ for the parts of one training step.
"""
