"""Colours, type and icons of the window, light and dark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication, QWidget

Scheme = Literal["system", "light", "dark"]
Role = Literal["title", "heading", "muted", "primary", "danger", "flat", "card", "error", "warning", "badge"]


@dataclass(frozen=True)
class Colours:
    """The colours of one scheme as '#rrggbb'."""

    dark: bool
    window: str
    surface: str
    border: str
    text: str
    muted: str
    accent: str
    on_accent: str
    warn: str
    error: str
    good: str
    checker_a: str
    checker_b: str
    curves: tuple[str, ...]


class Theme(QObject):
    """The one theme of an application: `changed` says that colours are others now (widgets also get PaletteChange)."""

    changed = Signal()

    def scheme(self) -> Scheme:
        """What was asked for: 'system' follows the desktop."""
        return "system"

    def set_scheme(self, scheme: Scheme) -> None:
        """Switch to light, dark, or whatever the desktop says."""


def apply(app: QApplication, scheme: Scheme = "system") -> Theme:
    """Give `app` the studio's look and return its theme; later calls switch the scheme of the same theme."""
    return Theme(app)


def colours() -> Colours:
    """The colours in use now."""
    raise NotImplementedError


def icon(name: str, colour: str = "") -> QIcon:
    """An icon of the set, in the text colour of the moment (it follows a change of scheme) or in a fixed `colour`."""
    return QIcon()


def set_role(widget: QWidget, role: Role) -> None:
    """Give a label, button or frame its part in the hierarchy of the page."""
