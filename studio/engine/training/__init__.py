"""Train a model: create a run, loop over ticks of steps, validate, save checkpoints, recover from failures.

Start with loop.py. step.py takes the steps of a tick, state.py holds what changes, create.py starts and resumes runs.
"""
