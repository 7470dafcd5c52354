"""The Train page: settings on the left (setup.py), curves and samples on the right (monitor.py). Start with page.py."""
