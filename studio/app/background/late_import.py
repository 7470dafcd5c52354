"""Modules that are imported at their first use: torch must not be loaded before the window's first paint."""

from __future__ import annotations

import importlib
from typing import Any


class LateModule:
    """A stand-in for a module that is imported when one of its attributes is first read.

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
