"""The training's settings (setup.py), the open run (training.py), its trainers (trainers.py) and the queue."""
