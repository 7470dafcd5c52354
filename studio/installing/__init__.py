"""Install the studio on a user's computer: the launcher, its window, and the choice of PyTorch's build.

Standard library only, because this package runs before anything is installed. Start with torch_builds.py.
"""
