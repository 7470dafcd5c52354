"""A table of colour ramps: move colours between ramps, and choose a new ramp for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PySide6.QtCore import QPoint, QRect, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QMenu, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.swatches import Swatches, hex_code
from studio.core.formatting import count
from studio.data.colour.ramp_exchange import RampExchange
from studio.data.colour.ramps import Ramp, Ramps, move_colour

_NAME_WIDTH = 72  # logical pixels
_STRIP = QSize(64, 12)
_FILE = "file"
_NEW_RAMP = "New ramp"
_MOVE_TIP = "Click a colour to move it to another ramp."
_BECOMES = "The new ramp for these colours; shading is kept."


class _Choice(NamedTuple):
    """A new ramp to choose: a ramp of the table by name, or a ramp of another source."""

    source: str  # '' for the table
    name: str


_UNCHANGED = _Choice("", "")


class RampTable(QWidget):
    """Ramps with their colours and new ramps.

    changed: colours moved, or the user chose a new ramp. file_requested: the user wants a new ramp from a file, for the
    ramp with this name.
    """

    changed = Signal()
    file_requested = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._ramps: Ramps = ()
        self._others: dict[_Choice, Ramp] = {}  # in menu order
        self._chosen: dict[str, _Choice] = {}  # by ramp
        self.rows: list[RampRow] = []
        self._moving: tuple[str, int] | None = None  # ramp and step of the colour in the menu
        self.menu = QMenu(self)
        self.menu.setAccessibleName("Move the colour")
        self._body = factory.column(spacing=4)
        self.setLayout(factory.column(self._body, 1))
        self.menu.triggered.connect(self._on_moved)

    def set_ramps(self, ramps: Ramps) -> None:
        """Show these ramps, without new ramps."""
        self._ramps, self._chosen = ramps, {}
        self._rebuild()

    def add_source(self, source: str, ramps: Sequence[Ramp], chosen_for: str = "") -> None:
        """Offer ramps of another source as new ramps.

        chosen_for: name of the ramp to exchange for the first of these ramps; '' for none.
        """
        self._others |= {_Choice(source, ramp.name): ramp for ramp in ramps}
        if chosen_for:
            self._chosen[chosen_for] = _Choice(source, ramps[0].name)
        self._rebuild()
        if chosen_for and len(ramps) > 1:
            next(row for row in self.rows if row.name == chosen_for).box.showPopup()

    def targets(self) -> dict[str, Ramp]:
        """Return the chosen new ramps by ramp."""
        own = {ramp.name: ramp for ramp in self._ramps}
        found = {name: self._others.get(chosen) or own.get(chosen.name) for name, chosen in self._chosen.items()}
        return {name: ramp for name, ramp in found.items() if ramp is not None and name in own}

    def exchange(self) -> RampExchange | None:
        """Return the chosen exchange; None if no ramp changes."""
        targets = self.targets()
        return RampExchange(self._ramps, targets) if targets else None

    def _rebuild(self) -> None:
        factory.clear(self._body)
        self.rows = [RampRow(ramp) for ramp in self._ramps]
        own = [(_Choice("", ramp.name), ramp) for ramp in self._ramps]
        for row in self.rows:
            offered = [*(item for item in own if item[1].name != row.name), *self._others.items()]
            row.offer(offered, self._chosen.get(row.name, _UNCHANGED))
            row.target_chosen.connect(self._on_target_chosen)
            row.colour_pressed.connect(self._on_colour_pressed)
            self._body.addWidget(row)
        self.changed.emit()

    @Slot(str, object)
    def _on_target_chosen(self, name: str, chosen: _Choice | None) -> None:
        if chosen is None:
            self.file_requested.emit(name)
        else:
            self._chosen[name] = chosen
            self.changed.emit()

    @Slot(str, int, QPoint)
    def _on_colour_pressed(self, name: str, step: int, place: QPoint) -> None:
        """Open a menu of ramps for the colour."""
        self._moving = name, step
        self.menu.clear()
        (ramp,) = (ramp for ramp in self._ramps if ramp.name == name)
        self.menu.addAction(f"Move {hex_code(ramp.colours[step])} to").setEnabled(False)
        self.menu.addSeparator()
        for other in self._ramps:
            if other is not ramp:
                self.menu.addAction(_strip(self, other), other.name).setData(other.name)
        new = self.menu.addAction(_NEW_RAMP)
        new.setData(_free_name(self._ramps))
        new.setEnabled(len(ramp.colours) > 1)
        self.menu.popup(place)

    @Slot(QAction)
    def _on_moved(self, action: QAction) -> None:
        if self._moving is not None:
            name, step = self._moving
            (ramp,) = (ramp for ramp in self._ramps if ramp.name == name)
            self._ramps = move_colour(self._ramps, ramp.colours[step], action.data())
            self._rebuild()


class RampRow(QWidget):
    """A ramp: name, colours and new ramp.

    colour_pressed: ramp, step, and place on the screen. target_chosen: ramp and new ramp; None to open a file.
    """

    colour_pressed = Signal(str, int, QPoint)
    target_chosen = Signal(str, object)

    def __init__(self, ramp: Ramp) -> None:
        super().__init__()
        self.name = ramp.name
        self._offered: list[_Choice] = []
        self._chosen = _UNCHANGED
        label = factory.text(ramp.name, wrap=False)
        label.setMinimumWidth(_NAME_WIDTH)
        self.swatches = Swatches(choosable=True)
        factory.set_name_and_tip(self.swatches, f"Colours of {ramp.name}", _MOVE_TIP)
        self.swatches.set_palette(ramp.colours, [f"{ramp.name} {step + 1}" for step in range(len(ramp.colours))])
        self.box = factory.combo(f"{ramp.name} becomes", _BECOMES)
        self.box.setMinimumContentsLength(12)
        self.box.setIconSize(_STRIP)
        self.setLayout(factory.row(label, self.swatches, self.box, grows=1))
        self.swatches.colour_pressed.connect(self._on_colour_pressed)
        self.box.activated.connect(self._on_activated)

    def offer(self, ramps: Sequence[tuple[_Choice, Ramp]], chosen: _Choice) -> None:
        """Fill the menu of new ramps."""
        self._offered, self._chosen = [_UNCHANGED, *(choice for choice, _ in ramps)], chosen
        self.box.addItem("Unchanged")
        for choice, ramp in ramps:
            text = f"{choice.source}: {ramp.name}" if choice.source else ramp.name
            self.box.addItem(_strip(self, ramp), text)
            self.box.setItemData(self.box.count() - 1, count(len(ramp.colours), "colour"), Qt.ItemDataRole.ToolTipRole)
        self.box.addItem("From a file…")
        self.box.setCurrentIndex(self._offered.index(chosen) if chosen in self._offered else 0)

    @Slot(int)
    def _on_activated(self, index: int) -> None:
        if index == len(self._offered):  # until the palette is loaded
            self.box.setCurrentIndex(self._offered.index(self._chosen) if self._chosen in self._offered else 0)
            self.target_chosen.emit(self.name, None)
        else:
            self._chosen = self._offered[index]
            self.target_chosen.emit(self.name, self._chosen)

    @Slot(int)
    def _on_colour_pressed(self, step: int) -> None:
        area = self.swatches.visualRect(self.swatches.model().index(step, 0))
        self.colour_pressed.emit(self.name, step, self.swatches.viewport().mapToGlobal(area.bottomLeft()))


def _free_name(ramps: Ramps) -> str:
    names = {ramp.name for ramp in ramps}
    return next(name for name in (f"ramp-{number}" for number in range(1, len(ramps) + 2)) if name not in names)


def _strip(widget: QWidget, ramp: Ramp) -> QIcon:
    """Return an icon of the ramp's colours from dark to light."""
    ratio = widget.devicePixelRatioF()
    picture = QPixmap(_STRIP * ratio)
    picture.setDevicePixelRatio(ratio)
    picture.fill(QColor(theme.colours().border))
    edges = np.linspace(1, _STRIP.width() - 1, len(ramp.colours) + 1).round().astype(int).tolist()
    with QPainter(picture) as painter:
        for colour, left, right in zip(ramp.colours.tolist(), edges, edges[1:], strict=False):
            painter.fillRect(QRect(left, 1, right - left, _STRIP.height() - 2), QColor(*colour))
    return QIcon(picture)
