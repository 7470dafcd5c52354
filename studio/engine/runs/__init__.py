"""Run folders, the record of each training: write, read back, list. Only checkpoints.py needs torch.

Start with folder.py, which lists the files of a run. analysis/ compares and reports, maintenance/ frees disk space.
"""
