"""Write a network as C source: operators of the graph become function calls, and constants go into a weights file.

Start with compose.py, which goes from a torch.export graph with static shapes to C99 source for libm alone.
"""
