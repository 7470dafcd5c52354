"""Pixels in: numpy and Pillow. No torch, no Qt."""
