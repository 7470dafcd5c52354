"""The parts of one training step: batches (start with batches.py), optimizers, CUDA graphs, timing, benchmarks."""
