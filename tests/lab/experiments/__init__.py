"""Tests of lessons whose explanation follows the measurement."""
