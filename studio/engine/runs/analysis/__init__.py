"""Interpret runs: advice on stopping, comparison, reports, timelapses, TensorBoard logs."""
