"""Attributes of sprites beside their class, such as kind and element. Start with attributes.py."""
