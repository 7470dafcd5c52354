"""Another machine for tests: a folder of this one, and programs that take the places of ssh, rsync and its studio."""
