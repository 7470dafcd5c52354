"""Finding the files under dropped paths, and reading them on all cores."""
