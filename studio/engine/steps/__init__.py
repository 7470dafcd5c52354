"""The parts of one training step: batches, optimizers, CUDA graphs, timing; and benchmarks of steps.

Start with batches.py, which keeps sprites on the device; streamed.py loads them in the background.
"""
