"""Attributes of sprites, such as kind and element, beside the class. Start with attributes.py."""
