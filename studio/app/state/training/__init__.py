"""State of the training: its settings (setup.py), the shown run (training.py), who trains it, and the queue."""
