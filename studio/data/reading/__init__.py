"""Finding files under the dropped paths, reading them on all cores, and gathering what they held."""
