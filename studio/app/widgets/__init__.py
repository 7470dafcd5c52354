"""Widgets that any page may use: they are handed values and emit signals.

They take arrays, texts and plain dataclasses of core, data and engine.types; they know no session, job or page.
"""
