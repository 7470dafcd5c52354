"""The pixel editor: tools, selection, painting, undo and redo."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QRect, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QWidget

from studio.app.widgets import factory
from studio.app.widgets.editor.canvas import PixelCanvas
from studio.app.widgets.editor.previews import Preview, tiled
from studio.app.widgets.editor.tool_box import ToolBox
from studio.app.widgets.input import KeyCommands
from studio.app.widgets.swatches import Swatches
from studio.core.arrays import Rgba
from studio.data.colour.palette import display_order, extract_palette, farthest_colours
from studio.data.pixels.editing import EditedSprite, EditHistory, Mask, Point, SavedEdit, Stroke

_MOST_OWN, _MOST_OF_MODEL = 32, 64  # swatches
_NARROW = 480  # logical pixels; a narrower editor has its settings below the canvas
_LOWEST_SETTINGS, _UNLIMITED = 136, (1 << 24) - 1  # height there; Qt's largest size of a widget
_RIGHT, _WIDEST_PREVIEW = 200, 256  # logical pixels, widths of the column beside the canvas and of a preview
_BAR = 16  # width of a scroll bar in logical pixels
_STEP, _TOOL_COLUMNS = factory.GRID // 2, 2
_CLEAR = np.zeros(4, np.uint8)
_FIRST_COLOUR = np.array([0, 0, 0, 255], np.uint8)


class Gesture(ABC):
    """An unfinished gesture that will change the sprite."""

    @abstractmethod
    def drag_to(self, place: Point) -> Mask | None:
        """Continue to a pixel. Return the pixels whose look changes, bool [S, S]; None for any pixels."""

    @abstractmethod
    def apply(self, edit: EditedSprite) -> EditedSprite:
        """Return the sprite as changed so far."""


class StrokeGesture(Gesture):
    """A stroke of a drawing tool. use: selects, deselects, paints or erases the covered pixels."""

    def __init__(self, stroke: Stroke, use: Callable[[EditedSprite, Mask], EditedSprite]) -> None:
        self.stroke, self._use = stroke, use

    def drag_to(self, place: Point) -> Mask:
        before, self.stroke = self.stroke.covered, self.stroke.drag_to(place)
        differs: Mask = before ^ self.stroke.covered
        return differs

    def apply(self, edit: EditedSprite) -> EditedSprite:
        return self._use(edit, self.stroke.covered)


class MoveGesture(Gesture):
    """A move of the selected pixels, or of the whole sprite."""

    def __init__(self, start: Point) -> None:
        self._start = self._last = start

    def drag_to(self, place: Point) -> None:
        self._last = place

    def apply(self, edit: EditedSprite) -> EditedSprite:
        return edit.move((self._last[0] - self._start[0], self._last[1] - self._start[1]))


class PaintColours(Swatches):
    """The colours to paint with, from the sprite and the model's palette. colour: the chosen one, opaque uint8 [4]."""

    def __init__(self) -> None:
        super().__init__(choosable=True)
        self.colour: NDArray[np.uint8] = _FIRST_COLOUR
        self._own, self._model = np.zeros((2, 0, 4), np.uint8)  # colours of the sprite and of the model's palette
        self.colour_pressed.connect(self._on_colour_pressed)
        self._refresh()

    def set_sprite(self, sprite: Rgba) -> None:
        """Show the colours of uint8 [S, S, 4]."""
        self._own = _sample(extract_palette(sprite[None])[0], _MOST_OWN)
        self._refresh()

    def set_palette_of_model(self, colours: NDArray[np.uint8]) -> None:
        """Add these colours, uint8 [K, 3], after the sprite's colours."""
        opaque = np.concatenate([colours, np.full((len(colours), 1), 255, np.uint8)], 1)
        self._model = _sample(opaque, _MOST_OF_MODEL)
        self._refresh()

    def pick_colour(self, colour: NDArray[np.uint8]) -> None:
        """Choose the opaque version of a colour, uint8 [4], to paint with. Ignore a transparent colour."""
        if colour[3]:
            self.colour = np.array([*colour[:3], 255], np.uint8)
            self._refresh()

    def offered(self) -> Rgba:
        """Return the colours to paint with, without duplicates: uint8 [K, 4]."""
        colours = np.concatenate([self._own, self._model, self.colour[None]])
        return colours[np.sort(np.unique(colours, axis=0, return_index=True)[1])]

    @Slot(int)
    def _on_colour_pressed(self, number: int) -> None:
        self.colour = self.offered()[number]
        self._refresh()

    def _refresh(self) -> None:
        offered, own = self.offered(), len(self._own)
        self.set_palette(offered, ["in this sprite"] * own + ["model palette"] * (len(offered) - own))
        self.mark(int(np.flatnonzero((offered == self.colour).all(1))[0]))


class SpriteEditor(QWidget):
    """An editor for a sprite and a selection of its pixels, with the keys of Aseprite where possible."""

    changed = Signal()  # the user made an edit
    undo_requested = Signal()
    redo_requested = Signal()

    def __init__(self, options: QWidget | None = None, foot: QWidget | None = None) -> None:
        """Create an editor. options, foot: extra widgets at the top and at the bottom of the right side."""
        super().__init__()
        self._history = EditHistory(SavedEdit(EditedSprite.of(np.zeros((1, 1, 4), np.uint8)), ""))
        self._palette_source = self._history.now  # the sprite whose colours are offered
        self._gesture: Gesture | None = None  # the unfinished stroke or move
        self.canvas = PixelCanvas()
        self.tools = ToolBox()
        self.swatches = PaintColours()
        self.undo = factory.tool_button("undo", "Undo", "Undo the last step. ({undo})", self.undo_requested)
        self.redo = factory.tool_button("redo", "Redo", "Redo the undone step. ({redo})", self.redo_requested)
        self.invert = factory.tool_button("invert", "Invert", "Invert the selection. ({invert})", self._invert)
        select_all = "Select all pixels to redraw the whole sprite."
        self.select_all = factory.button("Select all", select_all, slot=self._select_all)
        self.deselect = factory.button("Deselect", "Clear the selection.", slot=self._deselect)
        zoom_in = "Zoom in. (+, or mouse wheel) Drag with the middle button to pan."
        self.zooms = (
            factory.tool_button("zoom-in", "Zoom in", zoom_in, self.canvas.zoom_in),
            factory.tool_button("zoom-out", "Zoom out", "Zoom out. (-, or mouse wheel)", self.canvas.zoom_out),
            factory.tool_button("fit", "Fit to window", "Fit to window. (0)", self.canvas.fit),
        )
        self._actual = Preview("Actual size", "The sprite at actual size.", side=_WIDEST_PREVIEW)
        self._tiled = tiled()
        self._right = QWidget()
        self._area = factory.scroll_area(QWidget())
        self._box = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._selection_buttons = factory.panel(factory.row(self.select_all, self.deselect, 1, spacing=_STEP))
        self._lay_out(options, foot)
        self.canvas.pressed.connect(self._on_pressed)
        self.canvas.dragged.connect(self._on_dragged)
        self.canvas.released.connect(self._on_released)
        self.tools.layer_chosen.connect(self._on_layer_chosen)
        self.tools.tool_chosen.connect(self._on_tool_chosen)
        own = {"undo": self.undo.click, "redo": self.redo.click, "invert": self.invert.click}
        KeyCommands(self, {**self.tools.commands(), **own}, self._fixed_commands())
        self._on_layer_chosen()
        self._on_tool_chosen()
        self.refresh()

    def set_history(self, history: EditHistory) -> None:
        """Edit the last sprite of this history, and append new steps."""
        if history is not self._history:
            self._history, self._gesture = history, None
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        now = self._history.now
        if self._palette_source is not now and not now.is_same_sprite(self._palette_source):
            self.swatches.set_sprite(now.edit.sprite)
        self._palette_source = now
        self.canvas.set_edit(now.edit)
        for preview in (self._actual, self._tiled):
            preview.show_sprite(now.edit.sprite)
        self._arrange()

    def show_undo(self, undone: str, redone: str) -> None:
        """Name the steps that the Undo and Redo buttons request; '' disables a button."""
        factory.set_enabled(self.undo, "" if undone else "Nothing to undo.", f"Undo {undone}. ({{undo}})")
        factory.set_enabled(self.redo, "" if redone else "Nothing to redo.", f"Redo {redone}. ({{redo}})")

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _arrange(self) -> None:
        """Place the column of settings beside the canvas, or below it in a narrow editor."""
        is_narrow = self.width() < _NARROW
        self._box.setDirection(QBoxLayout.Direction.TopToBottom if is_narrow else QBoxLayout.Direction.LeftToRight)
        width = max(_RIGHT, self._actual.width() + _BAR)
        self._right.setMinimumWidth(0 if is_narrow else width)
        self._right.setMaximumWidth(_UNLIMITED if is_narrow else width)
        self._area.setMinimumHeight(_LOWEST_SETTINGS if is_narrow else 0)

    def edit(self) -> EditedSprite:
        """Return the current sprite with its selection."""
        return self._history.now.edit

    def replace(self, edit: EditedSprite) -> None:
        """Replace the sprite and its selection as an undoable step, if they differ."""
        if self._history.push(edit):
            self.refresh()
            self.changed.emit()

    def _lay_out(self, options: QWidget | None, foot: QWidget | None) -> None:
        caption, tools = factory.caption, QGridLayout()
        tools.setSpacing(_STEP)
        for number, tool in enumerate((*self.tools.buttons.values(), *self.zooms)):
            tools.addWidget(tool, *divmod(number, _TOOL_COLUMNS))
        tools.setRowStretch(tools.rowCount(), 1)
        modes = factory.row(*self.tools.layer_buttons.values(), 1, self.undo, self.redo, spacing=_STEP)
        brush = factory.row(factory.text("Brush", "muted", wrap=False), self.tools.brush, self.invert, 1)
        set_here = factory.column(modes, brush, self._selection_buttons, self.swatches)
        if options is not None:
            set_here.addWidget(options)
        seen = (caption("Actual size"), self._actual, caption("Tiled"), self._tiled)
        for widget in (*seen, caption("Scroll to zoom, middle button to pan.")):
            set_here.addWidget(widget)
        set_here.addStretch(1)
        self._area.setWidget(factory.panel(set_here))
        side = factory.column(self._area)
        if foot is not None:
            side.addWidget(foot)
        self._right.setLayout(side)
        self._box.addLayout(factory.row(tools, self.canvas, grows=1), 1)
        self._box.addWidget(self._right)
        self._box.setContentsMargins(0, 0, 0, 0)
        self.setLayout(self._box)

    def _fixed_commands(self) -> dict[str, Callable[[], object]]:
        zoom_in, zoom_out = self.canvas.zoom_in, self.canvas.zoom_out
        return {
            "0": self.canvas.fit, **dict.fromkeys(("+", "=", "Shift++"), zoom_in),
            **dict.fromkeys(("-", "_", "Shift+_"), zoom_out),
        }  # fmt: skip

    @Slot(tuple, bool, bool)
    def _on_pressed(self, place: Point, right: bool, alt: bool) -> None:
        if not self.canvas.is_inside(place):
            return
        sprite, tool = self.edit().sprite, self.tools.tool()
        if tool == "eyedropper" or alt:
            self.swatches.pick_colour(sprite[place[1], place[0]])
            return
        if tool == "move":
            self._gesture = MoveGesture(place)
            return
        stroke = Stroke.begin(tool, sprite, self.tools.brush.value(), place)
        self._gesture = StrokeGesture(stroke, self._use_of_stroke(erases=right or tool == "eraser"))
        self._preview(self._gesture, stroke.covered)

    @Slot(tuple)
    def _on_dragged(self, place: Point) -> None:
        if self._gesture is not None:
            self._preview(self._gesture, self._gesture.drag_to(place))

    @Slot(tuple)
    def _on_released(self, place: Point) -> None:
        if self._gesture is not None:
            gesture, self._gesture = self._gesture, None
            gesture.drag_to(place)
            self.replace(gesture.apply(self.edit()))

    def _use_of_stroke(self, *, erases: bool) -> Callable[[EditedSprite, Mask], EditedSprite]:
        """Return what a stroke does with its pixels: select, paint, or with `erases` the opposite."""
        if self.tools.layer() == "mark":
            return partial(EditedSprite.with_keep, stays=erases)
        return partial(EditedSprite.paint, colour=_CLEAR if erases else self.swatches.colour)

    def _preview(self, gesture: Gesture, differs: Mask | None) -> None:
        """Show an unfinished gesture. differs: pixels whose look changes, bool [S, S]; None for any pixels."""
        if differs is None or differs.any():
            part = _bounds(differs) if differs is not None else None
            self.canvas.set_edit(gesture.apply(self.edit()), part)

    @Slot()
    def _on_tool_chosen(self) -> None:
        self.canvas.needs_two_ends = self.tools.needs_two_ends()

    @Slot()
    def _on_layer_chosen(self) -> None:
        for widget in (self.invert, self._selection_buttons):
            widget.setVisible(self.tools.layer() == "mark")
        self.swatches.setVisible(self.tools.layer() == "paint")

    @Slot()
    def _invert(self) -> None:
        self.replace(EditedSprite(self.edit().sprite, ~self.edit().keep))

    @Slot()
    def _deselect(self) -> None:
        self.replace(EditedSprite.of(self.edit().sprite))

    @Slot()
    def _select_all(self) -> None:
        self.replace(EditedSprite(self.edit().sprite, np.zeros_like(self.edit().keep)))


def _bounds(mask: Mask) -> QRect:
    """Return the smallest rectangle around the pixels in `mask`, bool [S, S], which has some."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return QRect(int(columns[0]), int(rows[0]), int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1)


def _sample(colours: Rgba, most: int) -> Rgba:
    """Return at most this many of the colours uint8 [K, 4], as different as possible, in display order."""
    sample = farthest_colours(colours, most)
    return sample[display_order(sample)]
