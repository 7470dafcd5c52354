"""The Runs page: every run there is, its curves over those of others, and what can be done with it."""
