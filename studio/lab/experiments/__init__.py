"""One file per experiment, and in `base` what they are made from; other packages name theirs in an entry point."""
