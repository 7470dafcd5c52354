"""Distributed training: several processes, started by torchrun, train one run together.

ranks.py has what each process calls during the training, launching.py starts torchrun from the window.
"""
