"""Other machines, as far as one machine can be them: other processors, other thread counts, kernels that differ."""
