"""What the window knows, each part owned by the `Session`: sprites, devices, settings, the training, runs.

Pages read it and call it; it changes on events of jobs and says so by signals.
"""
