"""Write a network as C source code and a weights file. Each operator of its graph becomes a call of a C function.

Start with compose.py, which goes from a torch.export graph with static shapes to C99 source for libm alone.
"""
