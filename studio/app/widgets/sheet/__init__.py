"""A large picture with the cells that it is to be cut into: zoomed, scrolled, and its grid dragged."""
