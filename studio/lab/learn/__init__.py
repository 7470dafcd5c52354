"""What a learner does with lessons: run them, keep the answers, hand them in. Start with running.py."""
