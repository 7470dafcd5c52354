"""Imports modules at their first use: the window's first paint must not wait for torch."""

import importlib
from typing import Any


class LateModule:
    """A proxy for a module: the first read of an attribute imports it. Type checkers need a real import beside it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
