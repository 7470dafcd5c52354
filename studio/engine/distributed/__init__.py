"""Train a run with several processes: DistributedDataParallel (ranks.py) and torchrun (launching.py)."""
