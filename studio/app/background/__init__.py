"""The engine thread and its jobs.

worker.py is the QThread that drives all torch work, job_queue.py hands it jobs, the *_jobs modules define them.
"""
