"""Rewrite exported models with packages that only an extra installs. Start with onnx_models.py."""
