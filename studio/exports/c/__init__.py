"""Write a network as C source: each operator of its graph becomes a call of a plain function, with a file of weights.

compose.py is the whole way from a torch.export graph with constant shapes to C99 source that needs only libm.
"""
