"""Imports modules at their first use: the window's first paint must not wait for torch."""

from __future__ import annotations

import importlib
from typing import Any


class LateModule:
    """A proxy for a module: the first read of an attribute imports the module.

    Type checkers see the real import:

        if TYPE_CHECKING:
            from studio.engine.models import exporting
        else:
            exporting = LateModule("studio.engine.models.exporting")
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
