"""Find source files and decode them on all cores.

finding.py walks folders and archives, read.py decodes one file, reader_pool.py reads all files on a thread and in
worker processes, which execute reader_process.py.
"""
