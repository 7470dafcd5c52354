"""Interpret runs: advice on stopping, comparison, reports, timelapse films, TensorBoard logs."""
