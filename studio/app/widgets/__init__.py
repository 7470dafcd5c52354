"""Widgets that know nothing of training: they are handed values and emit signals."""
