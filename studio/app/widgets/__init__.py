"""Widgets that know nothing of training: they are handed arrays and emit signals."""
