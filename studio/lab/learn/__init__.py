"""A learner's work with lessons: measure, keep answers, hand in a page. Start with running.py."""
