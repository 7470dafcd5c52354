"""A sprite large, to be painted on: which of its pixels stay, and rough colours. Knows nothing of models."""
