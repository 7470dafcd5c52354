"""Trained models: load them from run folders, export them, and trace where a file came from. Start with model.py."""
