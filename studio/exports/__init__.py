"""One file per output format; `base` says what an export is."""
