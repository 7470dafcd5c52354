"""The editor of a sprite: tools at its side, previews, undo and redo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QRect, Signal, Slot
from PySide6.QtGui import QKeyEvent, QKeySequence
from PySide6.QtWidgets import QButtonGroup, QSpinBox, QToolButton, QWidget

from studio.app.widgets import factory
from studio.app.widgets.editor.canvas import PixelCanvas
from studio.app.widgets.editor.previews import actual_size, tiled
from studio.app.widgets.layout import Flow
from studio.app.widgets.swatches import Swatches
from studio.core.events import Rgba
from studio.data.colour.palette import display_order, palette_of
from studio.data.editing import Edit, History, Mask, Place, Stroke, Tool

Layer = Literal["keep", "paint"]

_TOOLS: dict[Tool | Literal["eyedropper"], tuple[str, str, str]] = {
    "pencil": ("Pencil", "Mark single pixels, or many with a wider brush", "B"),
    "rectangle": ("Rectangle", "Mark a rectangle", "M"),
    "bucket": ("Bucket", "Mark the area of one colour that hangs together", "G"),
    "wand": ("By colour", "Mark all pixels of one colour", "W"),
    "eyedropper": ("Eyedropper", "Take the colour of a pixel to paint with; Alt and a click do, too", "I"),
}
_LAYERS: dict[Layer, tuple[str, str]] = {
    "keep": ("What stays", "Mark what is to be drawn anew; the right button marks what stays. (Q)"),
    "paint": ("Colours", "Paint colours into the sprite, roughly; the right button erases. (Q)"),
}
_WIDEST_BRUSH = 8
_MOST_SWATCHES = 64
_CLEAR = np.zeros(4, np.uint8)
_FIRST_COLOUR = np.array([0, 0, 0, 255], np.uint8)


class PaintColours(Swatches):
    """The colours to paint with: a sprite's own and the model's, of which one is taken."""

    def __init__(self) -> None:
        super().__init__(choosable=True)
        self.colour: NDArray[np.uint8] = _FIRST_COLOUR
        self._own: Rgba = np.zeros((0, 4), np.uint8)  # of the sprite
        self._model: Rgba = np.zeros((0, 4), np.uint8)
        self.colour_pressed.connect(self._choose)
        self._refresh()

    def set_sprite(self, sprite: Rgba) -> None:
        """Offer the colours of uint8 [S, S, 4]."""
        self._own = palette_of(sprite[None], _MOST_SWATCHES)[0]
        self._refresh()

    def set_palette_of_model(self, colours: NDArray[np.uint8]) -> None:
        """Offer these colours, uint8 [K, 3], beside the sprite's own."""
        shown = colours[:_MOST_SWATCHES]
        self._model = np.concatenate([shown, np.full((len(shown), 1), 255, np.uint8)], 1)
        self._refresh()

    def take(self, colour: NDArray[np.uint8]) -> None:
        """Paint with uint8 [4], opaque, from now on; nothing that can't be seen is taken."""
        if colour[3]:
            self.colour = np.array([*colour[:3], 255], np.uint8)
            self._refresh()

    def offered(self) -> Rgba:
        """The colours to paint with, uint8 [K, 4], laid out for the eye."""
        colours = np.unique(np.concatenate([self._own, self._model, self.colour[None]]), axis=0)
        return colours[display_order(colours)]

    @Slot(int)
    def _choose(self, number: int) -> None:
        self.colour = self.offered()[number]
        self._refresh()

    def _refresh(self) -> None:
        offered = self.offered()
        self.set_palette(offered)
        self.mark(int(np.flatnonzero((offered == self.colour).all(1))[0]))


class SpriteEditor(QWidget):
    """A sprite and which of its pixels stay, to be painted on. changed: a stroke has ended, or a step was undone.

    The keys are those of Aseprite, where it has any.
    """

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._history = History(Edit.of(np.zeros((1, 1, 4), np.uint8)))
        self._tool: Tool | Literal["eyedropper"] = "pencil"
        self._layer: Layer = "keep"
        self._stroke: Stroke | None = None  # that is being drawn
        self._erases = False
        self.canvas = PixelCanvas()
        self.tools = QButtonGroup(self)
        self.layers = QButtonGroup(self)
        self.brush = QSpinBox()
        self.swatches = PaintColours()
        self.undo = factory.tool("undo", "Undo", "Take the last step back. (Ctrl+Z)")
        self.redo = factory.tool("redo", "Redo", "Take the step again. (Ctrl+Y)")
        self.invert = factory.tool("invert", "Invert", "Keep what is marked, and mark what is kept. (Ctrl+Shift+I)")
        self.keep_all = factory.button("Keep all", "Mark nothing: every pixel stays.")
        self.hide_all = factory.button("Hide all", "Mark everything.")
        self._actual, self._tiled = actual_size(), tiled()
        self._lay_out()
        self._keys = self._commands()
        self._connect()
        self._choose_layer(0)
        self._refresh()

    def set_sprite(self, sprite: Rgba, keep: Mask | None = None) -> None:
        """Edit uint8 [S, S, 4], of which bool [S, S] stays, all of it for None."""
        self._history = History(Edit.of(sprite) if keep is None else Edit(sprite, keep))
        self._stroke = None
        self.swatches.set_sprite(sprite)
        self._refresh()

    def choose_layer(self, layer: Layer) -> None:
        """Paint on what stays, or on the colours."""
        self._choose_layer(list(_LAYERS).index(layer))

    def edit(self) -> Edit:
        """The sprite as it is now."""
        return self._history.now

    def replace(self, edit: Edit) -> None:
        """Go on from this; undo brings back what was there before."""
        self._do(edit)

    def event(self, event: QEvent) -> bool:
        """Keys of the editor are not the window's, whose undo is for the sprites that are open."""
        if event.type() == QEvent.Type.ShortcutOverride:
            assert isinstance(event, QKeyEvent)
            if self._command(event) is not None:
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """What is not for the canvas."""
        command = self._command(event)
        if command is None:
            super().keyPressEvent(event)
        else:
            command()

    def _command(self, event: QKeyEvent) -> Callable[[], object] | None:
        """What a key stands for."""
        return self._keys.get(QKeySequence(event.keyCombination()).toString(QKeySequence.SequenceFormat.PortableText))

    def _commands(self) -> dict[str, Callable[[], object]]:
        """By the keys that stand for them."""
        zoom_in, zoom_out = self.canvas.zoom_in, self.canvas.zoom_out
        return {
            **{key: self.tools.button(number).click for number, (_, _, key) in enumerate(_TOOLS.values())},
            "Ctrl+Z": self.undo.click, "Ctrl+Y": self.redo.click, "Ctrl+Shift+Z": self.redo.click,
            "Ctrl+Shift+I": self.invert.click, "[": self.brush.stepDown, "]": self.brush.stepUp,
            "Q": self._other_layer, "0": self.canvas.fit,
            **dict.fromkeys(("+", "=", "Shift++"), zoom_in), **dict.fromkeys(("-", "_", "Shift+_"), zoom_out),
        }  # fmt: skip

    @Slot()
    def _other_layer(self) -> None:
        self._choose_layer(1 - self.layers.checkedId())

    def _lay_out(self) -> None:
        self.brush.setRange(1, _WIDEST_BRUSH)
        self.brush.setSuffix(" px")
        factory.describe(self.brush, "Brush", "How wide the pencil is. ([ and ])")
        for number, (name, (title, words, key)) in enumerate(_TOOLS.items()):
            button = factory.tool(name, title, f"{words}. ({key})")
            button.setCheckable(True)
            self.tools.addButton(button, number)
        for number, (title, words) in enumerate(_LAYERS.values()):
            made = QToolButton()
            made.setText(title)
            made.setCheckable(True)
            factory.describe(made, title, words)
            self.layers.addButton(made, number)
        self.tools.button(0).setChecked(True)
        bar = Flow(factory.GRID // 2, factory.GRID // 2)
        buttons = (*self.layers.buttons(), self.brush, self.invert, self.keep_all, self.hide_all, self.undo, self.redo)
        for each in buttons:
            bar.addWidget(each)
        side = factory.column(*self.tools.buttons(), 1, spacing=factory.GRID // 2)
        seen = factory.column(
            factory.text("True size", "muted", wrap=False), self._actual,
            factory.text("Tiled", "muted", wrap=False), self._tiled, 1, spacing=factory.GRID // 2,
        )  # fmt: skip
        middle = factory.row(side, self.canvas, seen)
        middle.setStretch(1, 1)
        body = factory.column(bar, self.swatches, middle)
        body.setStretch(2, 1)
        self.setLayout(body)

    def _connect(self) -> None:
        self.canvas.pressed.connect(self._begin)
        self.canvas.dragged.connect(self._go_on)
        self.canvas.released.connect(self._end)
        self.tools.idClicked.connect(self._choose_tool)
        self.layers.idClicked.connect(self._choose_layer)
        self.undo.clicked.connect(self._undo)
        self.redo.clicked.connect(self._redo)
        self.invert.clicked.connect(self._invert)
        self.keep_all.clicked.connect(self._keep_all)
        self.hide_all.clicked.connect(self._hide_all)

    @Slot(tuple, bool, bool)
    def _begin(self, place: Place, right: bool, alt: bool) -> None:
        if not self.canvas.is_inside(place):
            return
        sprite = self._history.now.sprite
        if self._tool == "eyedropper" or alt:
            self.swatches.take(sprite[place[1], place[0]])
            return
        self._erases = right
        self._stroke = Stroke.begun(self._tool, sprite, self.brush.value(), place)
        self._preview(self._stroke, self._stroke.covered)

    @Slot(tuple)
    def _go_on(self, place: Place) -> None:
        if self._stroke is not None:
            before, self._stroke = self._stroke.covered, self._stroke.dragged(place)
            self._preview(self._stroke, before ^ self._stroke.covered)

    @Slot()
    def _end(self) -> None:
        if self._stroke is not None:
            stroke, self._stroke = self._stroke, None
            self._do(self._with(stroke))

    def _with(self, stroke: Stroke) -> Edit:
        """The sprite with the stroke as far as it has come."""
        if self._layer == "keep":
            return self._history.now.kept(stroke.covered, stays=self._erases)
        return self._history.now.painted(stroke.covered, _CLEAR if self._erases else self.swatches.colour)

    def _preview(self, stroke: Stroke, differs: Mask) -> None:
        """Show the stroke before it ends."""
        rows, columns = np.flatnonzero(differs.any(1)), np.flatnonzero(differs.any(0))
        if len(rows):
            part = QRect(int(columns[0]), int(rows[0]), int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1)
            self.canvas.set_edit(self._with(stroke), part)

    def _do(self, edit: Edit) -> None:
        if self._history.push(edit):
            self._refresh()
            self.changed.emit()

    @Slot(int)
    def _choose_tool(self, number: int) -> None:
        self._tool = list(_TOOLS)[number]

    @Slot(int)
    def _choose_layer(self, number: int) -> None:
        self._layer = list(_LAYERS)[number]
        self.layers.button(number).setChecked(True)
        for button in (self.invert, self.keep_all, self.hide_all):
            button.setVisible(self._layer == "keep")
        self.swatches.setVisible(self._layer == "paint")

    @Slot()
    def _undo(self) -> None:
        self._history.undo()
        self._refresh()
        self.changed.emit()

    @Slot()
    def _redo(self) -> None:
        self._history.redo()
        self._refresh()
        self.changed.emit()

    @Slot()
    def _invert(self) -> None:
        now = self._history.now
        self._do(Edit(now.sprite, ~now.keep))

    @Slot()
    def _keep_all(self) -> None:
        self._do(Edit.of(self._history.now.sprite))

    @Slot()
    def _hide_all(self) -> None:
        now = self._history.now
        self._do(Edit(now.sprite, np.zeros_like(now.keep)))

    def _refresh(self) -> None:
        """Show how things are."""
        now = self._history.now
        self.canvas.set_edit(now)
        self._actual.show_sprite(now.sprite)
        self._tiled.show_sprite(now.sprite)
        self.undo.setEnabled(self._history.can_undo())
        self.redo.setEnabled(self._history.can_redo())
