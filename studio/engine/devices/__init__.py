"""Devices: detection, free memory, mixed precision, CUDA graphs and automatic batch sizes. Start with detection.py."""
