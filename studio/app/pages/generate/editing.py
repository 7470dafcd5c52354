"""The editor on the Generate page: draws variations of a sprite, or redraws its selected pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PySide6.QtCore import QMimeData, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from studio.app import dialogs
from studio.app.background.model_jobs import EditRequest, SpriteSelection
from studio.app.pages.generate.batches import origin_of
from studio.app.state.session import Session
from studio.app.widgets import factory, pasted
from studio.app.widgets.editor.editor import SpriteEditor
from studio.app.widgets.editor.previews import Preview
from studio.app.widgets.input import FocusWhenShown
from studio.app.widgets.layout import SteadyWidth
from studio.app.widgets.sprites.painting import as_image
from studio.core.arrays import Rgba
from studio.core.names import escape_unprintable
from studio.data.importing.single_sprite import fit_to_canvas
from studio.data.pixels.editing import EditedSprite, NamedSprite
from studio.data.sources.base import DRAWING_SUFFIXES

COUNT = 16  # candidates in a batch
_STRENGTH = "How much may change: 0 % keeps the pixels, 100 % redraws them from scratch."
_TITLES = {"none": "Draw variations", "some": "Redraw selection", "all": "Redraw all"}  # by selected pixels
_TIPS = {  # without and with 'Keep shape'
    "none": ("No selection: draw variations of the whole sprite.", "No selection: vary all colours; the shape stays."),
    "some": (
        "Redraw the selected pixels to fit the rest of the sprite.",
        "Recolour the selected pixels to fit the rest; the shape stays.",
    ),
    "all": ("Redraw all pixels; the strength sets how much may change.", "Recolour all pixels; the shape stays."),
}
_SHAPELESS = "The sprite is empty, so it has no shape to keep."
_EMPTY = "The sprite is empty. Paint some rough colours first."
_FORM = "Show the model, the seed and the other settings beside the editor."
_CLOSE = "Close the editor. Undo reopens the sprite."
_OTHER_MODEL = "Choose a generator under Model."
_SIDE, _ZOOM = 144, 4  # logical pixels, and zoom, of the preview
_SEEN = "Preview of the resized image, without blended pixels."
_OPEN = "Open the resized image."
_FIT = "Resize the sprite as shown. Undo restores the original."
_LEAVE = "Cancel without opening the image."


class EditorPanel(QWidget):
    """The sprite editor with draw options. changed: it opened or closed a sprite, or a prompt to resize an image."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._size = 0  # side of the model's sprites in pixels; 0 without a model
        self._page_problem = ""
        self._can_edit = False
        self._waiting: NamedSprite | None = None  # an image of another size, until the user answers
        self._shown = (False, False)  # is_open() and is_asking() at the last refresh
        self.draw = factory.button(_TITLES["none"], _TIPS["none"][0], "generate", "primary")
        SteadyWidth(self.draw, *_TITLES.values())
        save, copy = "Save the edited sprite as a PNG file.", "Copy the edited sprite to the clipboard."
        self.save = factory.tool_button("save", "Save edited sprite…", save, self._on_save_clicked)
        self.copy = factory.tool_button("copy", "Copy", copy, self._on_copy_clicked)
        self.show_form = factory.tool_button("settings", "Model and settings", _FORM)
        self.show_form.setCheckable(True)
        self.close_editor = factory.tool_button("close", "Close", _CLOSE, session.editing.close)
        self._title = factory.ElidedLabel("heading")
        self._class = factory.ElidedLabel("muted", Qt.TextElideMode.ElideLeft)  # the end of a path tells the class
        self._class.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._about = factory.caption("")
        self.options = DrawOptions()
        self.editor = SpriteEditor(self.options, factory.panel(factory.column(self._about, self.draw)))
        self.canvas_focus = FocusWhenShown(self.editor.canvas)  # for the keys of the tools
        self.question = ResizePrompt()
        head = factory.row(self._title, self._class, self.save, self.copy, self.show_form, self.close_editor, grows=0)
        head.setStretch(1, 1)
        self._head = factory.panel(head)
        self.setLayout(factory.column(self._head, self.question, self.editor, grows=2))
        session.editing.changed.connect(self._on_sprite_changed)
        session.editing.opened.connect(self.canvas_focus.request)
        session.editing.read.connect(self._on_picture_read)
        self.editor.changed.connect(session.editing.add_step)
        self.editor.undo_requested.connect(session.generate_history.undo)
        self.editor.redo_requested.connect(session.generate_history.redo)
        session.generate_history.changed.connect(self._on_history_changed)
        self.options.shape.toggled.connect(self._refresh)
        self.question.fitted.connect(session.editing.open)
        self.question.cancel.clicked.connect(self._on_sprite_changed)
        self._on_history_changed()
        self._on_sprite_changed()

    def is_open(self) -> bool:
        """Return whether the editor holds a sprite."""
        return self._session.editing.current is not None

    def is_asking(self) -> bool:
        """Return whether an image of another size waits for the user's answer."""
        return self._waiting is not None

    def set_model(self, size: int, capabilities: frozenset[str]) -> None:
        """Enable the controls that the chosen model supports. size: sprite width in pixels; 0 without a model."""
        self.options.shape.setVisible("silhouette" in capabilities)
        self._can_edit = "vary" in capabilities
        self._size = size
        if self._waiting is not None and self._fits(self._waiting.rgba):
            self.open_sprite(self._waiting)
        self._refresh()

    def set_problem(self, problem: str) -> None:
        """Disable drawing because of this error in the page's settings; '' for valid settings."""
        if problem != self._page_problem:
            self._page_problem = problem
            self._refresh()

    def request(self) -> EditRequest:
        """Return a request to vary the edited sprite, or to redraw its selected pixels."""
        sprite, keep = self.sprite(), self.editor.edit().keep
        silhouette = sprite.rgba[..., 3] if self.options.keeps_shape() else None
        fits_to = keep if keep.any() and not keep.all() else None  # with all pixels selected, none remain to fit to
        return EditRequest("redraw", sprite.rgba[None], (sprite.class_name,), fits_to, silhouette)

    def sprite(self) -> NamedSprite:
        current = self._session.editing.current
        assert current is not None
        return NamedSprite(self.editor.edit().sprite, current.name, current.class_name, current.source)

    def open_sprite(self, sprite: NamedSprite) -> None:
        """Edit this sprite; ask first if its size differs from the model's."""
        if self._fits(sprite.rgba):
            self._session.editing.open(sprite)
        else:
            self._waiting = sprite
            self._refresh()

    @Slot()
    def open_blank(self) -> None:
        """Edit a new, transparent sprite of the model's size."""
        self.open_sprite(NamedSprite(np.zeros((self._size, self._size, 4), np.uint8), "sketch"))
        self.editor.tools.choose_layer("paint")

    @Slot()
    def browse(self) -> None:
        """Ask for an image file and open it."""
        paths = dialogs.choose_files(self, self._session.settings, "Open sprite")
        if paths:
            self._session.editing.read_file(paths[0])

    def take(self, data: QMimeData) -> bool:
        """Open a dropped or pasted image or image file. Return False for other data."""
        path, image = picture_in(data), pasted.image_in(data)
        if path is not None:
            self._session.editing.read_file(path)
        elif image is not None:
            self.open_sprite(NamedSprite(image, "pasted sprite"))
        return path is not None or image is not None

    @Slot()
    def _on_save_clicked(self) -> None:
        sprite = self.sprite()
        name, kinds = f"{origin_of([sprite])}.png", "PNG image (*.png)"
        path = dialogs.choose_save_file(self, self._session.settings, "Save edited sprite", name, kinds)
        if path is not None:
            picked = SpriteSelection(sprite.rgba[None], [path.stem], {}, sources=[sprite.source])
            self._session.saving.save_file(path, picked)
            self._session.editing.mark_saved()

    @Slot()
    def _on_copy_clicked(self) -> None:
        sprite = np.ascontiguousarray(self.editor.edit().sprite)
        QGuiApplication.clipboard().setImage(as_image(sprite).copy())
        self._session.notify("Sprite copied.")

    def _problem(self, edit: EditedSprite) -> str:
        """Return why no sprite can be drawn from the edited sprite; '' if possible."""
        side = len(edit.sprite)
        if not self._fits(edit.sprite):
            return f"This sprite is {side} x {side} pixels; the model draws {self._size} x {self._size}."
        if edit.sprite[..., 3].any():
            return self._page_problem
        if self.options.keeps_shape():
            return _SHAPELESS
        return _EMPTY if edit.keep.all() else ""

    def _fits(self, rgba: Rgba) -> bool:
        """Return whether the sprite, uint8 [H, W, 4], is square and has the model's size, if known."""
        height, width = rgba.shape[:2]
        return height == width and self._size in (0, width)

    @Slot()
    def _on_history_changed(self) -> None:
        latest, following = self._session.generate_history.latest, self._session.generate_history.next
        self.editor.show_undo(latest.title if latest else "", following.title if following else "")

    @Slot()
    def _on_sprite_changed(self) -> None:
        """Show the session's edited sprite, or close the editor. Drop an image that awaits a resize."""
        self._waiting = None
        current, history = self._session.editing.current, self._session.editing.history
        if current is not None and history is not None:
            self.editor.set_history(history)
            self._title.show_text(current.name)
            self._class.show_text(current.class_name)
            if self._session.runs.are_known and not self._can_edit:
                title = f"{current.name} stays in the editor. This model can't edit sprites."
                self._session.notify(title, _OTHER_MODEL, holds=lambda: self.is_open() and not self._can_edit)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        waiting, edit = self._waiting, self.editor.edit()
        if waiting is None and self.is_open() and not self._fits(edit.sprite):
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
        selected = "none" if edit.keep.all() else "some" if edit.keep.any() else "all"
        problem, text = self._problem(edit), _TIPS[selected][self.options.keeps_shape()]
        factory.set_button_text(self.draw, _TITLES[selected])
        factory.set_enabled(self.draw, problem, text)
        self._about.setText(problem or text)
        self.options.show_strength(for_selection=selected != "none")

    @Slot(object, object)
    def _on_picture_read(self, path: Path, rgba: Rgba) -> None:
        self.open_sprite(NamedSprite(rgba, escape_unprintable(path.name)))


class DrawOptions(QWidget):
    """Controls for drawing from the edited sprite: the strength, and keeping the shape."""

    def __init__(self) -> None:
        super().__init__()
        self._strengths = {False: 50, True: 100}  # per cent: False for the whole sprite, True for selected pixels
        self._is_for_selection = False
        self.shape = factory.check_box("Keep shape", "Keep the transparency; only colours change.")
        self.strength = factory.percent_slider("Strength", _STRENGTH, self._strengths[False])
        self.strength.setMinimumWidth(80)
        self._label = factory.text("Strength 50 %", "muted", wrap=False)
        self._label.setMinimumWidth(self.fontMetrics().horizontalAdvance("Strength 100 %"))
        self.setLayout(factory.column(factory.row(self._label, self.strength, grows=1), self.shape))
        self.strength.valueChanged.connect(self._on_strength_changed)

    def keeps_shape(self) -> bool:
        """Return whether to keep the transparency; False if the model can't."""
        return self.shape.isChecked() and not self.shape.isHidden()

    def share(self) -> float:
        """Return how much the model may change the sprite, 0 to 1."""
        return self.strength.value() / 100

    def show_strength(self, *, for_selection: bool) -> None:
        """Show the strength last used for the whole sprite or for selected pixels."""
        self._is_for_selection = for_selection
        self.strength.setValue(self._strengths[for_selection])

    @Slot(int)
    def _on_strength_changed(self, value: int) -> None:
        self._strengths[self._is_for_selection] = value
        self._label.setText(f"Strength {value} %")


class ResizePrompt(QWidget):
    """Offers a resized image, with a preview; hidden without an image. fitted: the NamedSprite the user accepted."""

    fitted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._fitted: NamedSprite | None = None
        self.text, self.how = factory.text(""), factory.caption("")
        self.preview = Preview("Fitted", _SEEN, zoom=_ZOOM, side=_SIDE)
        self.fit = factory.button("Resize", _FIT, slot=self._on_resize_clicked)
        SteadyWidth(self.fit, "Resize", "Open resized")
        self.cancel = factory.button("Cancel", _LEAVE)
        texts = factory.column(self.text, self.how, factory.row(self.fit, self.cancel, 1), 1)
        self.setLayout(factory.row(factory.column(self.preview, 1), texts, spacing=2 * factory.GRID, grows=1))
        self.hide()

    def show_sprite(self, sprite: NamedSprite | None, size: int, *, is_new: bool = False) -> None:
        """Show this sprite resized to `size` x `size` pixels; None hides the prompt.

        is_new: the image is not in the editor yet, so the user can also cancel.
        """
        self.setVisible(sprite is not None)
        if sprite is None:
            self._fitted = None
            return
        found = fit_to_canvas(sprite.rgba, size)
        self._fitted = sprite._replace(rgba=found.rgba)
        self.preview.show_sprite(found.rgba)
        sizes = f"{sprite.name} is {found.width} x {found.height} pixels; this model needs {size} x {size}."
        way_on = "Preview of the resized image:" if is_new else "Resize the sprite as shown, or choose another model."
        self.text.setText(f"{sizes} {way_on}")
        self.how.setText(f"Steps: {', '.join(found.changes)}.")
        factory.set_button_text(self.fit, "Open resized" if is_new else "Resize")
        self.fit.setToolTip(_OPEN if is_new else _FIT)
        self.cancel.setVisible(is_new)

    @Slot()
    def _on_resize_clicked(self) -> None:
        if self._fitted is not None:
            self.fitted.emit(self._fitted)


def picture_in(data: QMimeData) -> Path | None:
    """Return the single image file in a drag or the clipboard; None for other data."""
    paths = pasted.local_paths(data)
    return paths[0] if len(paths) == 1 and paths[0].suffix.lower() in DRAWING_SUFFIXES else None
