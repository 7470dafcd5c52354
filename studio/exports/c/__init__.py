"""Write a network as C source code and a weights file. Each operator in the network's graph becomes a C function call.

Start with compose.py: a torch.export graph with static shapes becomes C99 source that links with libm alone.
"""
