"""Install and start the studio on a user's computer: the launcher of .deb and .run, and the choice of PyTorch's build.

Standard library only, because this package runs before anything is installed, from the wheel that an installer carries.
Start with launcher.py, then environment.py.
"""
