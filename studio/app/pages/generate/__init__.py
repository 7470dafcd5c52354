"""The Generate page: which model, what is asked of it, and what it drew or predicted."""
