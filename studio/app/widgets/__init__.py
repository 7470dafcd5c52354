"""Widgets that know nothing of training: they receive values and emit signals. Start with factory.py."""
