"""The Generate page: request, results, editor and predictions. Start with page.py."""
