"""Distributed training: torchrun starts processes (launching.py). The processes train a run together (ranks.py)."""
