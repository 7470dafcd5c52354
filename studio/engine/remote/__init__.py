"""Train a run on another machine: training.py over ssh.py, while marker.py marks the run's local folder."""
