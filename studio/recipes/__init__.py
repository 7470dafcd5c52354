"""Kinds of models. Each recipe is a plug-in of one file: settings, network, loss, and drawing or predicting.

Start with base.py, then classifier.py, the shortest recipe. flow.py, unet.py and layers.py are shared parts.
"""
