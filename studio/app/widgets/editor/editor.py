"""The editor of a sprite: tools and previews at its left, what is set at its right, undo and redo."""

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
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.swatches import Swatches
from studio.core.arrays import Rgba
from studio.data.colour.palette import display_order, extract_palette, farthest_colours
from studio.data.pixels.editing import EditedSprite, EditHistory, Mask, Point, SavedEdit, Stroke, Tool

Layer = Literal["mark", "paint"]

_TOOLS: dict[Tool | Literal["eyedropper"], tuple[str, str, str]] = {
    "pencil": ("Pencil", "Single pixels, or many with a wider brush", "B"),
    "rectangle": ("Rectangle", "A rectangle", "M"),
    "bucket": ("Bucket", "The area of one colour that hangs together", "G"),
    "wand": ("By colour", "All pixels of one colour", "W"),
    "eyedropper": ("Eyedropper", "Take the colour of a pixel to paint with; Alt and a click do, too", "I"),
}
_LAYERS: dict[Layer, tuple[str, str]] = {
    "mark": ("Mark", "Mark what is to be redrawn; the right button takes marks away. (Q)"),
    "paint": ("Paint", "Paint colours into the sprite, roughly; the right button erases. (Q)"),
}
_UNDO = "Undo the last step, such as opening another sprite. (Ctrl+Z)"
_REDO = "Redo the undone step. (Ctrl+Y)"
_WIDEST_BRUSH = 8
_MOST_OWN, _MOST_OF_MODEL = 32, 64  # swatches
_OWN, _OF_MODEL = "in this sprite", "the model's"
_LEFT, _RIGHT = 104, 200  # logical pixels, of what is beside the canvas
_BAR = 16  # at the right of what is scrolled, in logical pixels
_CLEAR = np.zeros(4, np.uint8)
_FIRST_COLOUR = np.array([0, 0, 0, 255], np.uint8)


class PaintColours(Swatches):
    """The colours to paint with, of which one is taken: a sprite's own, then some that stand for all of the model's."""

    def __init__(self) -> None:
        super().__init__(choosable=True)
        self.colour: NDArray[np.uint8] = _FIRST_COLOUR
        self._own: Rgba = np.zeros((0, 4), np.uint8)  # of the sprite
        self._model: Rgba = np.zeros((0, 4), np.uint8)
        self.colour_pressed.connect(self._on_colour_pressed)
        self._refresh()

    def set_sprite(self, sprite: Rgba) -> None:
        """Offer the colours of uint8 [S, S, 4]."""
        self._own = _laid_out(farthest_colours(extract_palette(sprite[None])[0], _MOST_OWN))
        self._refresh()

    def set_palette_of_model(self, colours: NDArray[np.uint8]) -> None:
        """Offer these colours, uint8 [K, 3], beside the sprite's own."""
        opaque = np.concatenate([colours, np.full((len(colours), 1), 255, np.uint8)], 1)
        self._model = _laid_out(farthest_colours(opaque, _MOST_OF_MODEL))
        self._refresh()

    def pick_colour(self, colour: NDArray[np.uint8]) -> None:
        """Paint with uint8 [4], opaque, from now on; nothing that can't be seen is taken."""
        if colour[3]:
            self.colour = np.array([*colour[:3], 255], np.uint8)
            self._refresh()

    def offered(self) -> Rgba:
        """The colours to paint with, each once: uint8 [K, 4]."""
        colours = np.concatenate([self._own, self._model, self.colour[None]])
        return colours[np.sort(np.unique(colours, axis=0, return_index=True)[1])]

    @Slot(int)
    def _on_colour_pressed(self, number: int) -> None:
        self.colour = self.offered()[number]
        self._refresh()

    def _refresh(self) -> None:
        offered = self.offered()
        others = len(offered) - len(self._own)
        self.set_palette(offered, [_OWN] * len(self._own) + [_OF_MODEL] * others)
        self.mark(int(np.flatnonzero((offered == self.colour).all(1))[0]))


class SpriteEditor(QWidget):
    """A sprite and which of its pixels are marked, to be painted on. changed: a step was made, undone or redone.

    The keys are those of Aseprite, where it has any.
    """

    changed = Signal()

    def __init__(self, options: QWidget | None = None, foot: QWidget | None = None) -> None:
        """options and foot: what is to be set and to be done beside, at the right of the canvas."""
        super().__init__()
        self._history = EditHistory(SavedEdit(EditedSprite.of(np.zeros((1, 1, 4), np.uint8)), ""))
        self._of = self._history.now  # whose colours are offered
        self._tool: Tool | Literal["eyedropper"] = "pencil"
        self._layer: Layer = "mark"
        self._stroke: Stroke | None = None  # that is being drawn
        self._erases = False
        self.canvas = PixelCanvas()
        self.tools = QButtonGroup(self)
        self.layers = QButtonGroup(self)
        self.brush = QSpinBox()
        self.swatches = PaintColours()
        self.undo = factory.tool_button("undo", "Undo", _UNDO)
        self.redo = factory.tool_button("redo", "Redo", _REDO)
        self.invert = factory.tool_button(
            "invert", "Invert", "Mark what is not marked, and unmark the rest. (Ctrl+Shift+I)"
        )
        self.mark_all = factory.button("Mark all", "Mark every pixel: all of the sprite is redrawn.")
        self.clear_marks = factory.button("Clear marks", "Take all marks away.")
        self.zooms = (
            factory.tool_button(
                "zoom-in", "Zoom in", "Larger: the wheel up, or +. The middle button moves the sprite."
            ),
            factory.tool_button("zoom-out", "Zoom out", "Smaller: the wheel down, or -."),
            factory.tool_button("fit", "Fit", "All of the sprite, as large as there is room. (0)"),
        )
        self._actual, self._tiled = actual_size(), tiled()
        self._left = factory.scroll_area(QWidget())
        self._marking = factory.panel(factory.row(self.mark_all, self.clear_marks, 1, spacing=factory.GRID // 2))
        self._lay_out(options, foot)
        self._keys = self._commands()
        self._connect()
        self._on_layer_clicked(0)
        self.refresh()

    def set_history(self, history: EditHistory) -> None:
        """Edit the sprite at the end of these steps, and add to them."""
        if history is not self._history:
            self._history = history
            self._stroke = None
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show how things are."""
        now = self._history.now
        if self._of is not now and not now.is_same_sprite(self._of):
            self.swatches.set_sprite(now.edit.sprite)
        self._of = now
        self.canvas.set_edit(now.edit)
        self._actual.show_sprite(now.edit.sprite)
        self._tiled.show_sprite(now.edit.sprite)
        self._left.setFixedWidth(max(_LEFT, self._actual.width()) + _BAR)
        factory.set_enabled(self.undo, "" if self._history.undo_state() is not None else "Nothing to undo.", _UNDO)
        factory.set_enabled(self.redo, "" if self._history.redo_state() is not None else "Nothing to redo.", _REDO)

    def choose_layer(self, layer: Layer) -> None:
        """Mark, or paint."""
        self._on_layer_clicked(list(_LAYERS).index(layer))

    def edit(self) -> EditedSprite:
        """The sprite as it is now."""
        return self._history.now.edit

    def replace(self, edit: EditedSprite) -> None:
        """Go on from this; undo brings back what was there before."""
        self._push(edit)

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
            "Q": self._toggle_layer, "0": self.canvas.fit,
            **dict.fromkeys(("+", "=", "Shift++"), zoom_in), **dict.fromkeys(("-", "_", "Shift+_"), zoom_out),
        }  # fmt: skip

    @Slot()
    def _toggle_layer(self) -> None:
        self._on_layer_clicked(1 - self.layers.checkedId())

    def _lay_out(self, options: QWidget | None, foot: QWidget | None) -> None:
        self.brush.setRange(1, _WIDEST_BRUSH)
        self.brush.setSuffix(" px")
        factory.pad_spin_box(self.brush)
        factory.set_name_and_tip(self.brush, "Brush", "How wide the pencil is. ([ and ])")
        for number, (name, (title, tip, key)) in enumerate(_TOOLS.items()):
            button = factory.tool_button(name, title, f"{tip}. ({key})")
            button.setCheckable(True)
            self.tools.addButton(button, number)
        for number, (title, tip) in enumerate(_LAYERS.values()):
            made = QToolButton()
            made.setText(title)
            made.setCheckable(True)
            factory.set_name_and_tip(made, title, tip)
            self.layers.addButton(made, number)
        self.tools.button(0).setChecked(True)
        step = factory.GRID // 2
        tools, caption = FlowLayout(step, step), factory.caption
        for each in (*self.tools.buttons(), *self.zooms):
            tools.addWidget(each)
        seen = factory.column(caption("True size"), self._actual, caption("Tiled"), self._tiled, spacing=0)
        self._left.setWidget(factory.panel(factory.column(tools, seen, 1, spacing=step)))
        modes = factory.row(*self.layers.buttons(), 1, self.undo, self.redo, spacing=step)
        brush = factory.row(factory.text("Brush", "muted", wrap=False), self.brush, self.invert, 1)
        set_here = factory.column(modes, brush, self._marking, self.swatches)
        if options is not None:
            set_here.addWidget(options)
        set_here.addWidget(caption("The wheel zooms, the middle button moves the sprite."))
        set_here.addStretch(1)
        side = factory.column(factory.scroll_area(factory.panel(set_here)))
        if foot is not None:
            side.addWidget(foot)
        right = factory.panel(side)
        right.setFixedWidth(_RIGHT)
        body = factory.row(self._left, self.canvas, right)
        body.setStretch(1, 1)
        self.setLayout(body)

    def _connect(self) -> None:
        self.canvas.pressed.connect(self._on_pressed)
        self.canvas.dragged.connect(self._on_dragged)
        self.canvas.released.connect(self._on_released)
        self.tools.idClicked.connect(self._on_tool_clicked)
        self.layers.idClicked.connect(self._on_layer_clicked)
        self.undo.clicked.connect(self._on_undo_clicked)
        self.redo.clicked.connect(self._on_redo_clicked)
        self.invert.clicked.connect(self._invert)
        self.mark_all.clicked.connect(self._mark_all)
        self.clear_marks.clicked.connect(self._clear_marks)
        for button, slot in zip(self.zooms, (self.canvas.zoom_in, self.canvas.zoom_out, self.canvas.fit), strict=True):
            button.clicked.connect(slot)

    @Slot(tuple, bool, bool)
    def _on_pressed(self, place: Point, right: bool, alt: bool) -> None:
        if not self.canvas.is_inside(place):
            return
        sprite = self.edit().sprite
        if self._tool == "eyedropper" or alt:
            self.swatches.pick_colour(sprite[place[1], place[0]])
            return
        self._erases = right
        self._stroke = Stroke.begin(self._tool, sprite, self.brush.value(), place)
        self._preview(self._stroke, self._stroke.covered)

    @Slot(tuple)
    def _on_dragged(self, place: Point) -> None:
        if self._stroke is not None:
            before, self._stroke = self._stroke.covered, self._stroke.drag_to(place)
            self._preview(self._stroke, before ^ self._stroke.covered)

    @Slot()
    def _on_released(self) -> None:
        if self._stroke is not None:
            stroke, self._stroke = self._stroke, None
            self._push(self._with(stroke))

    def _with(self, stroke: Stroke) -> EditedSprite:
        """The sprite with the stroke as far as it has come."""
        if self._layer == "mark":
            return self.edit().with_keep(stroke.covered, stays=self._erases)
        return self.edit().paint(stroke.covered, _CLEAR if self._erases else self.swatches.colour)

    def _preview(self, stroke: Stroke, differs: Mask) -> None:
        """Show the stroke before it ends."""
        rows, columns = np.flatnonzero(differs.any(1)), np.flatnonzero(differs.any(0))
        if len(rows):
            part = QRect(int(columns[0]), int(rows[0]), int(np.ptp(columns)) + 1, int(np.ptp(rows)) + 1)
            self.canvas.set_edit(self._with(stroke), part)

    def _push(self, edit: EditedSprite) -> None:
        if self._history.push(edit):
            self.refresh()
            self.changed.emit()

    @Slot(int)
    def _on_tool_clicked(self, number: int) -> None:
        self._tool = list(_TOOLS)[number]

    @Slot(int)
    def _on_layer_clicked(self, number: int) -> None:
        self._layer = list(_LAYERS)[number]
        self.layers.button(number).setChecked(True)
        for widget in (self.invert, self._marking):
            widget.setVisible(self._layer == "mark")
        self.swatches.setVisible(self._layer == "paint")

    @Slot()
    def _on_undo_clicked(self) -> None:
        self._history.undo()
        self.refresh()
        self.changed.emit()

    @Slot()
    def _on_redo_clicked(self) -> None:
        self._history.redo()
        self.refresh()
        self.changed.emit()

    @Slot()
    def _invert(self) -> None:
        now = self.edit()
        self._push(EditedSprite(now.sprite, ~now.keep))

    @Slot()
    def _clear_marks(self) -> None:
        self._push(EditedSprite.of(self.edit().sprite))

    @Slot()
    def _mark_all(self) -> None:
        now = self.edit()
        self._push(EditedSprite(now.sprite, np.zeros_like(now.keep)))


def _laid_out(colours: Rgba) -> Rgba:
    """uint8 [K, 4], for the eye."""
    return colours[display_order(colours)]
