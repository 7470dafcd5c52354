"""Find problems in imported sprites and fix them without changing the files.

findings.py lists the problems and their fixes, fixes.py applies the fixes, checks.py runs slower checks after the
import.
"""
