"""Devices: detection, free memory, mixed precision, CUDA graphs, automatic batch sizes. Start with detection.py."""
