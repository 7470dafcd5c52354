"""Store imported sprites on disk: the import cache (caching.py) and the packed format in a run folder (packed.py)."""
