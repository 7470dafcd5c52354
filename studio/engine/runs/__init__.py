"""Run folders: create, read, list and queue training runs. Start with folder.py, which documents their files.

analysis/ compares runs and writes reports, maintenance/ frees disk space. Only checkpoints.py imports torch.
"""
