"""One file per way to describe the sprites of a sheet in a file beside it; `base` says what a description gives."""
