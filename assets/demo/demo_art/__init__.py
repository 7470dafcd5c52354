"""Procedural drawing of the demo sprites."""
