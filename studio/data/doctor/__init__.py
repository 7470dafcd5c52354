"""Find problems in imported sprites and offer fixes that leave the files alone.

findings.py lists the problems, fixes.py applies the fixes, checks.py runs the slower checks after the import.
"""
