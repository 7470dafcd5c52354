"""Kinds of models. Each recipe is a one-file plug-in: settings, network, loss, and drawing or predicting.

Start with base.py, then classifier.py, the shortest recipe. flow.py, unet.py and layers.py are shared parts.
"""
