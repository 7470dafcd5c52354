"""Everything that trains and samples: torch, no Qt."""
