"""Devices: detection, memory, mixed precision, CUDA graphs, automatic batch sizes. Start with detection.py."""
