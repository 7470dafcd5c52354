"""Run folders, the record of each training: written, read back, listed and compared. Torch only for checkpoints."""
