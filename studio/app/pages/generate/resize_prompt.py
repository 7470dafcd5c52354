"""Prompt that offers to resize an image to the model's size, with a preview."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app.widgets import factory
from studio.app.widgets.editor.previews import Preview
from studio.data.importing.single_sprite import fit_to_canvas
from studio.data.pixels.editing import NamedSprite

_SIDE, _ZOOM = 144, 4  # logical pixels, and zoom, of the preview
_SEEN = "Preview of the resized image, without blended pixels."
_OPEN = "Open the resized image."
_FIT = "Resize the sprite as shown. Undo restores the original."
_LEAVE = "Cancel without opening the image."


class ResizePrompt(QWidget):
    """A preview of a resized image, with Resize and Cancel buttons. Hidden without an image.

    fitted: the user accepted this resized sprite, a NamedSprite.
    """

    fitted = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._fitted: NamedSprite | None = None
        self.text, self.how = factory.text(""), factory.caption("")
        self.preview = Preview("Fitted", _SEEN, zoom=_ZOOM, side=_SIDE)
        self.fit = factory.button("Resize", _FIT)
        self.cancel = factory.button("Cancel", _LEAVE)
        texts = factory.column(self.text, self.how, factory.row(self.fit, self.cancel, 1), 1)
        self.setLayout(factory.row(factory.column(self.preview, 1), texts, spacing=2 * factory.GRID, grows=1))
        self.fit.clicked.connect(self._on_resize_clicked)
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
