"""The editor on the Generate page: a sprite, which of its pixels stay, and how much the others may change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from PySide6.QtCore import QMimeData, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QCheckBox, QSlider, QWidget

from studio.app import dialogs
from studio.app.background.job_events import PictureRead
from studio.app.background.model_jobs import EditRequest, SpriteSelection
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.editor.editor import SpriteEditor
from studio.app.widgets.sprites.painting import as_image
from studio.core.events import Rgba
from studio.data.editing import Edit, NamedSprite
from studio.data.naming import shown
from studio.data.one_sprite import fit
from studio.data.sources.base import PICTURE_SUFFIXES

if TYPE_CHECKING:
    from studio.recipes.base import Ability

_KINDS = PICTURE_SUFFIXES | {".ase", ".aseprite"}
COUNT = 16  # candidates that are drawn at once
_STRENGTH = "How much may change: at 0 nothing, at 100 % what was there is forgotten; below, new pixels take after it."
_VARY = "All of it may change, as much as the strength says. Mark a part, and that alone is drawn anew."
_FILL = "What is marked is drawn to fit what stays."
_SHAPE = "Its shape stays: what can be seen of it and what can't. Only colours change."
_SHAPELESS = "There is no shape to keep: nothing of the sprite can be seen."
_NOTHING_STAYS = "No pixel stays: unmark some, or keep all and draw variations."


class SizeQuestion(QWidget):
    """How a sprite of another size than the model's is to be fitted; hidden while there is none.

    fitted: (NamedSprite) it has that size now. left: it is to stay as it is.
    """

    fitted = Signal(object)
    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.asked: NamedSprite | None = None
        self._size = 0
        self.words = factory.text("")
        self.fit = factory.button("Take it so", "Put the picture on the model's canvas.")
        self.leave = factory.button("Leave it", "Forget the picture.")
        row = factory.row(self.words, self.fit, self.leave)
        row.setStretch(0, 1)
        self.setLayout(row)
        self.fit.clicked.connect(self._fit_it)
        self.leave.clicked.connect(self._leave_it)
        self.hide()

    def ask(self, asked: NamedSprite | None, size: int) -> None:
        """Ask of this sprite, uint8 [H, W, 4], for a model of so many pixels a side; None: of none any more."""
        self.asked, self._size = asked, size
        if asked is not None:
            how = fit(asked.rgba, size).how
            self.words.setText(f"{asked.name} has another size than the model's sprites. It would be: {how}.")
        self.setVisible(asked is not None)

    @Slot()
    def _fit_it(self) -> None:
        if self.asked is not None:
            asked = self.asked
            self.ask(None, self._size)
            self.fitted.emit(asked._replace(rgba=fit(asked.rgba, self._size).rgba))

    @Slot()
    def _leave_it(self) -> None:
        self.ask(None, self._size)
        self.left.emit()


class EditorPanel(QWidget):
    """A sprite with what is to become of it; a picture of another size than the model's is fitted, after asking.

    draw_wanted: candidates are. changed: there is a sprite or a question, or none any more.
    """

    draw_wanted = Signal()
    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._size = 0  # of the model's sprites; 0 while there is no model
        self._strengths = {"vary": 50, "fill": 100}  # in per cent
        self.editor = SpriteEditor()
        self.draw = factory.button("Draw variations", _VARY, "generate", "primary")
        self.save = factory.button("Save…", "Save the sprite as it is now, as a PNG file.", "save")
        self.copy = factory.button("Copy", "Copy the sprite as it is now, to paste it in another program.", "copy")
        self.close_editor = factory.button("Close", "Put the sprite away. It is not lost where it came from.")
        self.shape = QCheckBox("Keep its shape")
        factory.describe(self.shape, "Keep its shape", _SHAPE)
        self.strength = QSlider(Qt.Orientation.Horizontal)
        self.strength.setRange(0, 100)
        factory.describe(self.strength, "Strength", _STRENGTH)
        self._title, self._class = factory.RunningLabel("heading"), factory.RunningLabel("muted")
        self._about = factory.caption("")
        self._strength_words = factory.text("", "muted", wrap=False)
        self.question = SizeQuestion()
        self._lay_out()
        self._connect()
        self._open()

    def is_open(self) -> bool:
        """Whether there is a sprite in the editor."""
        return self._session.editing.current is not None

    def is_asking(self) -> bool:
        """Whether a sprite of another size waits for a word on how to fit it."""
        return self.question.asked is not None

    def set_model(self, size: int, can: frozenset[Ability]) -> None:
        """The chosen model draws sprites of so many pixels a side, 0 for no model, and can do this beside."""
        self.shape.setVisible("silhouette" in can)
        is_other, self._size = size != self._size, size
        if is_other and self.question.asked is not None:
            self.take(self.question.asked)
        elif is_other and self.is_open() and size not in (0, len(self.sprite().rgba)):
            self.take(self.sprite())
        self._refresh()

    def request(self) -> EditRequest:
        """What is to be drawn from the sprite."""
        sprite = self.sprite()
        keep, silhouette = self.editor.edit().keep, sprite.rgba[..., 3] if self._keeps_shape() else None
        return EditRequest("redraw", sprite.rgba[None], (sprite.class_name,), None if keep.all() else keep, silhouette)

    def strength_share(self) -> float:
        """0 to 1."""
        return self.strength.value() / 100

    def sprite(self) -> NamedSprite:
        """The sprite in the editor."""
        current = self._session.editing.current
        assert current is not None
        return NamedSprite(self.editor.edit().sprite, current.name, current.class_name, current.source)

    def take(self, sprite: NamedSprite) -> None:
        """Edit this sprite; ask first how to fit one of another size."""
        is_here = self.is_open() and sprite.rgba is self.sprite().rgba
        height, width = sprite.rgba.shape[:2]
        fits = (height, width) == (self._size or max(height, width),) * 2
        self.question.ask(None if fits else sprite, self._size)
        if fits and not is_here:
            self._session.editing.open(sprite)
        self.changed.emit()

    @Slot()
    def begin_blank(self) -> None:
        """Edit a sprite of which nothing can be seen yet, of the model's size."""
        self.take(NamedSprite(np.zeros((self._size, self._size, 4), np.uint8), "sketch"))
        self.editor.choose_layer("paint")

    def take_candidate(self, rgba: Rgba) -> None:
        """Go on from one of the candidates; undo brings back what was there before."""
        self.editor.replace(Edit(rgba, self.editor.edit().keep))

    @Slot()
    def browse(self) -> None:
        """Ask for a picture file."""
        paths = dialogs.for_files(self, self._session.settings, "Open a sprite")
        if paths:
            self._session.editing.read_file(paths[0])

    @Slot()
    def paste(self) -> None:
        """Take the picture that is in the clipboard."""
        if not self.take_mime(QGuiApplication.clipboard().mimeData(), "pasted sprite"):
            self._session.notify("There is no picture in the clipboard.", "Copy a sprite in another program first.")

    def take_mime(self, data: QMimeData, name: str) -> bool:
        """Take a picture, or a picture file, that was dropped or pasted. False where it is none."""
        path = picture_in(data)
        if path is not None:
            self._session.editing.read_file(path)
        elif data.hasImage():
            self.take(NamedSprite(_pixels(QImage(data.imageData())), name))
        return path is not None or data.hasImage()

    def _lay_out(self) -> None:
        self.strength.setMinimumWidth(80)
        self._strength_words.setMinimumWidth(self.fontMetrics().horizontalAdvance("Strength 100 %"))
        head = factory.row(self._title, self._class, self.save, self.copy, self.close_editor)
        head.setStretch(0, 1)
        head.setStretch(1, 1)
        how = factory.row(self._strength_words, self.strength, self.shape)
        how.setStretch(1, 1)
        foot = factory.row(self._about, self.draw)
        foot.setStretch(0, 1)
        body = factory.column(self.question, head, self.editor, how, foot)
        body.setStretch(2, 1)
        self.setLayout(body)

    def _connect(self) -> None:
        editing = self._session.editing
        editing.opened.connect(self._open)
        editing.closed.connect(self._close)
        editing.read.connect(self._take_picture)
        self.editor.changed.connect(self._take_change)
        self.shape.toggled.connect(self._refresh)
        self.strength.valueChanged.connect(self._strength_moved)
        self.save.clicked.connect(self._save)
        self.copy.clicked.connect(self._copy)
        self.close_editor.clicked.connect(editing.close)
        self.draw.clicked.connect(self.draw_wanted)
        self.question.fitted.connect(self._take_fitted)
        self.question.left.connect(self.changed)

    @Slot()
    def _save(self) -> None:
        sprite = self.sprite()
        path = dialogs.for_new_file(
            self, self._session.settings, "Save the sprite", f"{sprite.name}.png", "PNG picture (*.png)"
        )
        if path is not None:
            picked = SpriteSelection(sprite.rgba[None], [path.stem], {}, sources=[sprite.source])
            self._session.inference.save_files(path.parent, picked)

    @Slot()
    def _copy(self) -> None:
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
        side = len(self.editor.edit().sprite)
        if self._size and side != self._size:
            return f"This sprite has {side} x {side} pixels, the model draws {self._size} x {self._size}."
        if self._keeps_shape() and not self.editor.edit().sprite[..., 3].any():
            return _SHAPELESS
        return "" if self.editor.edit().keep.any() else _NOTHING_STAYS

    @Slot()
    def _open(self) -> None:
        current = self._session.editing.current
        if current is not None:
            self.editor.set_sprite(current.edit.sprite, current.edit.keep)
            self._title.say(current.name)
            self._class.say(current.class_name)
        self._refresh()
        self.changed.emit()

    @Slot()
    def _close(self) -> None:
        self.changed.emit()

    @Slot()
    def _take_change(self) -> None:
        self._session.editing.change(self.editor.edit())
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        if not self.is_open():
            return
        kind, problem = self._kind(), self.problem()
        words = _VARY if kind == "vary" else _FILL
        factory.relabel(self.draw, "Draw variations" if kind == "vary" else "Fill in")
        factory.enable(self.draw, problem, words)
        self._about.setText(problem or words)
        self.strength.blockSignals(True)
        self.strength.setValue(self._strengths[kind])
        self.strength.blockSignals(False)
        self._strength_words.setText(f"Strength {self.strength.value()} %")

    @Slot(int)
    def _strength_moved(self, value: int) -> None:
        self._strengths[self._kind()] = value
        self._strength_words.setText(f"Strength {value} %")

    @Slot(object)
    def _take_picture(self, picture: PictureRead) -> None:
        self.take(NamedSprite(picture.rgba, shown(picture.path.name)))

    @Slot(object)
    def _take_fitted(self, fitted: NamedSprite) -> None:
        self._session.editing.open(fitted)
        self.changed.emit()


def picture_in(data: QMimeData) -> Path | None:
    """The one picture file that is dragged or copied; None for anything else."""
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    return paths[0] if len(paths) == 1 and paths[0].suffix.lower() in _KINDS else None


def _pixels(image: QImage) -> Rgba:
    """uint8 [H, W, 4]."""
    converted = image.convertToFormat(QImage.Format.Format_RGBA8888)
    rows = np.frombuffer(converted.constBits(), np.uint8).reshape(converted.height(), converted.bytesPerLine())
    return rows[:, : 4 * converted.width()].reshape(converted.height(), converted.width(), 4).copy()
