"""Changing ONNX graphs. Its modules need onnx, which is not always installed: they are imported where it is used."""
