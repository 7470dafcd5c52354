"""The editor on the Generate page: a sprite, which of its pixels are redrawn, and how much may change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from PySide6.QtCore import QMimeData, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QCheckBox, QSlider, QWidget

from studio.app import dialogs
from studio.app.background.model_jobs import EditRequest, SpriteSelection
from studio.app.pages.generate.batches import origin_of
from studio.app.pages.generate.resize_prompt import ResizePrompt
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.editor.editor import SpriteEditor
from studio.app.widgets.sprites.painting import as_image
from studio.core.arrays import Rgba
from studio.core.names import escape_unprintable
from studio.data.pixels.editing import EditedSprite, NamedSprite
from studio.data.sources.base import DRAWING_SUFFIXES

if TYPE_CHECKING:
    from studio.recipes.capabilities import Capability

COUNT = 16  # candidates that are drawn at once
_STRENGTH = "How much may change: at 0 nothing, at 100 % what was there is forgotten; below, new pixels take after it."
_VARIED = "Nothing is marked: all of it is varied. Mark a part to redraw that alone."
_RECOLOURED = "Nothing is marked: all of its colours are varied, its shape stays."
_REDRAWN = "What is marked is redrawn, to fit the rest, which stays as it is."
_REDRAWN_INSIDE = "What is marked gets other colours, to fit the rest; the shape stays."
_ALL_REDRAWN = "All of it is marked: all of it is redrawn, as much as the strength says."
_ALL_REDRAWN_INSIDE = "All of it is marked: all of its colours are redrawn, its shape stays."
_SHAPE = "Its shape stays: what can be seen of it and what can't. Only colours change."
_SHAPELESS = "There is no shape to keep: nothing of the sprite can be seen."
_EMPTY = "There is nothing to vary yet: under Paint, put down some colours, roughly."
_SAVE = "Save the sprite here in the editor, as it is now, as a PNG file; sprites below have buttons of their own."
_CLOSE = "Put the sprite away; Ctrl+Z comes back to it."


class EditorPanel(QWidget):
    """A sprite with what is to become of it; a picture of another size than the model's is fitted, after asking.

    draw_wanted: candidates are. changed: there is a sprite or a question, or none any more.
    """

    draw_requested = Signal()
    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._size = 0  # of the model's sprites; 0 while there is no model
        self._page_problem = ""  # why the page's settings can't be drawn
        self._can_edit = False  # whether the model can
        self._waiting: NamedSprite | None = None  # of another size, and not in the editor yet
        self._shown = (False, False)  # whether there is a sprite, and a question
        self._strengths = {"vary": 50, "fill": 100}  # in per cent
        self.draw = factory.button("Draw variations", _VARIED, "generate", "primary")
        self.save = factory.button("Save edited sprite…", _SAVE, "save")
        self.copy = factory.button("Copy", "Copy the sprite here, to paste it in another program.", "copy")
        self.close_editor = factory.button("Close", _CLOSE)
        self.shape = QCheckBox("Inside its shape")
        factory.set_name_and_tip(self.shape, "Inside its shape", _SHAPE)
        self.strength = QSlider(Qt.Orientation.Horizontal)
        self.strength.setRange(0, 100)
        factory.set_name_and_tip(self.strength, "Strength", _STRENGTH)
        self._title, self._class = factory.ElidedLabel("heading"), factory.ElidedLabel("muted")
        self._about = factory.caption("")
        self._strength_label = factory.text("", "muted", wrap=False)
        self.editor = SpriteEditor(self._options(), factory.panel(factory.column(self._about, self.draw)))
        self.question = ResizePrompt()
        head = factory.row(self._title, self._class, self.save, self.copy, self.close_editor)
        head.setStretch(0, 1)
        head.setStretch(1, 1)
        self._head = factory.panel(head)
        body = factory.column(self._head, self.question, self.editor)
        body.setStretch(2, 1)
        self.setLayout(body)
        self._connect()
        self._on_sprite_changed()

    def is_open(self) -> bool:
        """Whether there is a sprite in the editor."""
        return self._session.editing.current is not None

    def is_asking(self) -> bool:
        """Whether a picture of another size waits for a word on how to fit it."""
        return self._waiting is not None

    def set_model(self, size: int, capabilities: frozenset[Capability]) -> None:
        """Set the chosen model's sprite size in pixels, 0 for no model, and its abilities."""
        self.shape.setVisible("silhouette" in capabilities)
        self._can_edit = "vary" in capabilities
        self._size = size
        if self._waiting is not None and self._fits(self._waiting.rgba):
            self.open_sprite(self._waiting)
        self._refresh()

    def set_problem(self, problem: str) -> None:
        """Set the reason why the page's settings can't be drawn; empty for usable settings."""
        if problem != self._page_problem:
            self._page_problem = problem
            self._refresh()

    def request(self) -> EditRequest:
        """What is to be drawn from the sprite."""
        sprite, keep = self.sprite(), self.editor.edit().keep
        silhouette = sprite.rgba[..., 3] if self._keeps_shape() else None
        fitted_to = keep if keep.any() and not keep.all() else None  # where all is marked, nothing is left to fit to
        return EditRequest("redraw", sprite.rgba[None], (sprite.class_name,), fitted_to, silhouette)

    def strength_share(self) -> float:
        """0 to 1."""
        return self.strength.value() / 100

    def sprite(self) -> NamedSprite:
        """The sprite in the editor."""
        current = self._session.editing.current
        assert current is not None
        return NamedSprite(self.editor.edit().sprite, current.name, current.class_name, current.source)

    def open_sprite(self, sprite: NamedSprite) -> None:
        """Edit this sprite; ask first how to fit one of another size."""
        if self._fits(sprite.rgba):
            self._session.editing.open(sprite)
        else:
            self._waiting = sprite
            self._refresh()

    @Slot()
    def begin_blank(self) -> None:
        """Edit a sprite of which nothing can be seen yet, of the model's size."""
        self.open_sprite(NamedSprite(np.zeros((self._size, self._size, 4), np.uint8), "sketch"))
        self.editor.choose_layer("paint")

    def use_candidate(self, rgba: Rgba) -> None:
        """Go on from one of the candidates; undo brings back what was there before."""
        self.editor.replace(EditedSprite(rgba, self.editor.edit().keep))

    @Slot()
    def browse(self) -> None:
        """Ask for a picture file."""
        paths = dialogs.choose_files(self, self._session.settings, "Open a sprite")
        if paths:
            self._session.editing.read_file(paths[0])

    @Slot()
    def paste(self) -> None:
        """Take the picture that is in the clipboard."""
        if not self._can_edit:
            self._say_not_edited("The chosen model can't edit sprites.", self._cannot_edit)
        elif not self.open_mime(QGuiApplication.clipboard().mimeData(), "pasted sprite"):
            self._session.notify("There is no picture in the clipboard.", "Copy a sprite in another program first.")

    def open_mime(self, data: QMimeData, name: str) -> bool:
        """Take a picture, or a picture file, that was dropped or pasted. False where it is none."""
        path = picture_in(data)
        if path is not None:
            self._session.editing.read_file(path)
        elif data.hasImage():
            self.open_sprite(NamedSprite(_pixels(QImage(data.imageData())), name))
        return path is not None or data.hasImage()

    def _say_not_edited(self, title: str, holds: Callable[[], bool]) -> None:
        self._session.notify(title, "Choose a generator under Model.", holds=holds)

    def _cannot_edit(self) -> bool:
        return not self._can_edit

    def _hides_sprite(self) -> bool:
        return self.is_open() and not self._can_edit

    def _options(self) -> QWidget:
        """How much is to change."""
        self.strength.setMinimumWidth(80)
        self._strength_label.setMinimumWidth(self.fontMetrics().horizontalAdvance("Strength 100 %"))
        how_much = factory.row(self._strength_label, self.strength)
        how_much.setStretch(1, 1)
        return factory.panel(factory.column(how_much, self.shape))

    def _connect(self) -> None:
        editing = self._session.editing
        editing.changed.connect(self._on_sprite_changed)
        editing.read.connect(self._on_picture_read)
        self.editor.changed.connect(editing.add_step)
        self.shape.toggled.connect(self._refresh)
        self.strength.valueChanged.connect(self._on_strength_changed)
        self.save.clicked.connect(self._on_save_clicked)
        self.copy.clicked.connect(self._on_copy_clicked)
        self.close_editor.clicked.connect(editing.close)
        self.draw.clicked.connect(self.draw_requested)
        self.question.fitted.connect(editing.open)
        self.question.cancelled.connect(self._on_sprite_changed)

    @Slot()
    def _on_save_clicked(self) -> None:
        sprite = self.sprite()
        name, kinds = f"{origin_of([sprite])}.png", "PNG picture (*.png)"
        path = dialogs.choose_save_file(self, self._session.settings, "Save the sprite in the editor", name, kinds)
        if path is not None:
            picked = SpriteSelection(sprite.rgba[None], [path.stem], {}, sources=[sprite.source])
            self._session.inference.save_file(path, picked)
            self._session.editing.mark_saved()

    @Slot()
    def _on_copy_clicked(self) -> None:
        sprite = np.ascontiguousarray(self.editor.edit().sprite)
        QGuiApplication.clipboard().setImage(as_image(sprite).copy())
        self._session.notify("The sprite is in the clipboard.")

    def _kind(self) -> Literal["vary", "fill"]:
        return "vary" if self.editor.edit().keep.all() else "fill"

    def _keeps_shape(self) -> bool:
        return self.shape.isChecked() and not self.shape.isHidden()

    def problem(self) -> str:
        """Why nothing can be drawn from the sprite; empty when it can."""
        if not self.is_open():
            return "There is no sprite in the editor."
        edit = self.editor.edit()
        side = len(edit.sprite)
        if not self._fits(edit.sprite):
            return f"This sprite has {side} x {side} pixels, the model draws {self._size} x {self._size}."
        if not edit.sprite[..., 3].any():
            if self._keeps_shape():
                return _SHAPELESS
            return _EMPTY if edit.keep.all() else ""
        return self._page_problem

    def _promise(self) -> tuple[str, str]:
        """What is drawn from the sprite as it is marked now: the name of that, and a sentence."""
        keep, inside = self.editor.edit().keep, self._keeps_shape()
        if keep.all():
            return "Draw variations", _RECOLOURED if inside else _VARIED
        if keep.any():
            return "Redraw marked", _REDRAWN_INSIDE if inside else _REDRAWN
        return "Redraw all", _ALL_REDRAWN_INSIDE if inside else _ALL_REDRAWN

    def _fits(self, rgba: Rgba) -> bool:
        """Whether uint8 [H, W, 4] has the model's size; without a model, whether it is square."""
        height, width = rgba.shape[:2]
        return height == width and self._size in (0, width)

    @Slot()
    def _on_sprite_changed(self) -> None:
        """Another sprite, another step of it, or none; what waited does so no longer."""
        self._waiting = None
        current, history = self._session.editing.current, self._session.editing.history
        if current is not None and history is not None:
            self.editor.set_history(history)
            self._title.show_text(current.name)
            self._class.show_text(current.class_name)
            if self._session.runs.are_known and not self._can_edit:
                title = f"{current.name} waits in the editor: the chosen model can't edit sprites."
                self._say_not_edited(title, self._hides_sprite)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        waiting = self._waiting
        if waiting is None and self.is_open() and not self._fits(self.editor.edit().sprite):
            waiting = self.sprite()
        size = self._size if waiting is None else self._size or max(waiting.rgba.shape[:2])
        self.question.show_sprite(waiting, size, is_new=self.is_asking())
        self._head.setVisible(self.is_open() and not self.is_asking())
        self.editor.setVisible(self.is_open() and waiting is None)
        before, self._shown = self._shown, (self.is_open(), self.is_asking())
        if self._shown != before:
            self.changed.emit()
        if not self.is_open():
            return
        problem, (title, text) = self.problem(), self._promise()
        factory.set_button_text(self.draw, title)
        factory.set_enabled(self.draw, problem, text)
        self._about.setText(problem or text)
        self.strength.blockSignals(True)
        self.strength.setValue(self._strengths[self._kind()])
        self.strength.blockSignals(False)
        self._strength_label.setText(f"Strength {self.strength.value()} %")

    @Slot(int)
    def _on_strength_changed(self, value: int) -> None:
        self._strengths[self._kind()] = value
        self._strength_label.setText(f"Strength {value} %")

    @Slot(object, object)
    def _on_picture_read(self, path: Path, rgba: Rgba) -> None:
        self.open_sprite(NamedSprite(rgba, escape_unprintable(path.name)))


def picture_in(data: QMimeData) -> Path | None:
    """The one picture file that is dragged or copied; None for anything else."""
    paths = factory.local_paths(data)
    return paths[0] if len(paths) == 1 and paths[0].suffix.lower() in DRAWING_SUFFIXES else None


def _pixels(image: QImage) -> Rgba:
    """uint8 [H, W, 4]."""
    converted = image.convertToFormat(QImage.Format.Format_RGBA8888)
    rows = np.frombuffer(converted.constBits(), np.uint8).reshape(converted.height(), converted.bytesPerLine())
    return rows[:, : 4 * converted.width()].reshape(converted.height(), converted.width(), 4).copy()
