"""The system check: says whether this computer can train, why a graphics card is not used, and what to do.

Every part runs in a child process, which is killed if it hangs. Start with checking.py, then cards.py.
"""
