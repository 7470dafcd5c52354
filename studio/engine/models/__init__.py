"""Trained models: load from a run, export to other formats, trace their provenance. Start with loading.py."""
