"""Find source files and decode them in worker processes.

finding.py walks folders and archives, workers.py runs the processes, child.py is what each process executes.
"""
