"""Train a model: create a run, loop over ticks of steps, validate, save checkpoints, recover from failures.

Start with loop.py. step.py runs the steps of a tick, maintenance.py the work between ticks; state.py holds a training's
state, saving.py writes it, create.py creates and resumes runs.
"""
