"""Use a trained model: draw sprites (start with generate.py), edit, predict, distil. settings.py needs no torch."""
