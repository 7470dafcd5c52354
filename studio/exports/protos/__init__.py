"""Edit ONNX graphs. Start with rewriting.py."""
