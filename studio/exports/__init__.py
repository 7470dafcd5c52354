"""Formats of exported models. Each format is a plug-in of one file that writes a model and reads the file back.

Start with base.py, then safetensors.py. sprites/ has the formats of drawn sprites; c/, web/ and scripts/ generate code.
"""
