"""Compose the exported training script from the studio's own source code. Start with compose.py."""
