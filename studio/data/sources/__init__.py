"""One file per kind of input; `base` says what a source is."""
