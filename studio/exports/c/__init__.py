"""A network as C source: its graph becomes calls of plain functions, one for each operator, and a file of weights.

What comes in is a torch.export graph with constant shapes; what goes out needs a C99 compiler and its libm alone.
"""
