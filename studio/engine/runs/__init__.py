"""Run folders, the record of each training: created, written, read back and listed. Torch only for checkpoints."""
