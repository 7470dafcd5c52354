"""One file per kind of model; `base` says what a recipe is."""
