"""Store imported sprites on disk: the import cache (import_cache.py) and the packed file of a run (packed.py)."""
