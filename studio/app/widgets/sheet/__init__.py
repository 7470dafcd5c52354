"""A sheet (one large picture) with the cells that it is to be cut into: zoomed, scrolled, and its grid dragged.

In come pixels and a grid or boxes; out goes the grid as it was dragged.
"""
