"""labels.csv -> the classes and the numbers of sprites."""
