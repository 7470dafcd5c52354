"""Distributed training: torchrun starts processes (launching.py) that train one run together (ranks.py)."""
