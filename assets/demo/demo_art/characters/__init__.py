"""Characters drawn in four directions with a walk of four frames."""
