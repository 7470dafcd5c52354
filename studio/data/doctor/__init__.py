"""Find problems in imported sprites and fix them without changing the files.

findings.py lists problems and fixes, fixes.py applies the fixes, checks.py runs slower checks after the import.
"""
