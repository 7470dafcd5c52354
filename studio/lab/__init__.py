"""Experiments that show what training really does on a device, with one's own sprites: measured, told and kept.

They run in a process of their own. One file each in `experiments`; what comes in is sprites, a recipe and a device.
"""
