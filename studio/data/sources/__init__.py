"""Kinds of input files. Each kind is a plug-in of one file that turns a file into pictures; base.py is their base."""
