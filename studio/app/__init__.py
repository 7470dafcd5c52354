"""The window: the only package that imports Qt.

The files here put it together; pages show what state holds, widgets know neither, background drives the jobs.
"""
