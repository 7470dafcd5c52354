"""One file per kind of palette file; `base` says what a palette and its format are."""
