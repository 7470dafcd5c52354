"""Export formats for models. Each format is a plug-in in a single module, which writes a model and verifies the file.

Start with base.py, then safetensors.py. sprites/ holds formats for sprites; c/, web/ and scripts/ generate code.
"""
