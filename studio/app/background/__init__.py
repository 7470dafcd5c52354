"""The worker threads and their jobs.

Start with job_queue.py: `JobQueue.run` and `JobQueue.start` put a job on a thread of worker.py. The *_jobs modules and
trash.py define the longer jobs.
"""
