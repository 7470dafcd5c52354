"""The Runs page: the table of runs, comparison, notes, queue and disk space. Start with page.py."""
