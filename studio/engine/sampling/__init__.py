"""Use a trained model: draw sprites, edit sprites, predict, and distil a few-step network.

Start with generate.py. edit.py starts from existing sprites; settings.py needs no torch.
"""
