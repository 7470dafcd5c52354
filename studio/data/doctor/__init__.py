"""Find problems in imported sprites and offer fixes that leave the files alone.

findings.py lists the problems, mending.py applies the fixes, examining.py runs the slower checks after the import.
"""
