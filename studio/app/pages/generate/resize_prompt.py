"""How a sprite of another size than the model's would be fitted: seen, before it is."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QWidget

from studio.app.widgets import factory
from studio.app.widgets.editor.previews import Preview
from studio.data.importing.single_sprite import fit_to_canvas
from studio.data.pixels.editing import NamedSprite

_SIDE, _ZOOM = 144, 4  # of the preview, in logical pixels
_SEEN = "The picture on the model's canvas: no pixel is mixed with another."
_OPEN = "Edit it as it is shown here."
_FIT = "Edit it as it is shown here; Undo brings it back as it was."
_LEAVE = "The picture is not opened; nothing else changes."


class ResizePrompt(QWidget):
    """Hidden while there is nothing to ask. fitted: (NamedSprite) with the model's size. left: it is to be left."""

    fitted = Signal(object)
    cancelled = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._fitted: NamedSprite | None = None
        self.text, self.how = factory.text(""), factory.caption("")
        self.preview = Preview("Fitted", _SEEN, zoom=_ZOOM, side=_SIDE)
        self.fit = factory.button("Fit it", _FIT)
        self.leave = factory.button("Don't open it", _LEAVE)
        texts = factory.column(self.text, self.how, factory.row(self.fit, self.leave, 1), 1)
        row = factory.row(factory.column(self.preview, 1), texts, spacing=2 * factory.GRID)
        row.setStretch(1, 1)
        self.setLayout(row)
        self.fit.clicked.connect(self._on_resize_clicked)
        self.leave.clicked.connect(self.cancelled)
        self.hide()

    def show_sprite(self, sprite: NamedSprite | None, size: int, *, is_new: bool = False) -> None:
        """Ask of this sprite, uint8 [H, W, 4], for a model of so many pixels a side; None: of none any more.

        is_new: it is not in the editor yet, and need not come there.
        """
        self.setVisible(sprite is not None)
        if sprite is None:
            self._fitted = None
            return
        found = fit_to_canvas(sprite.rgba, size)
        self._fitted = sprite._replace(rgba=found.rgba)
        self.preview.show_sprite(found.rgba)
        sizes = f"{sprite.name} has {found.width} x {found.height} pixels, this model's sprites have {size} x {size}."
        way_on = "Fitted, it looks like this." if is_new else "Fit it, and it looks like this; or choose another model."
        self.text.setText(f"{sizes} {way_on}")
        self.how.setText(f"What is done to it: {', '.join(found.changes)}.")
        factory.set_button_text(self.fit, "Open it so" if is_new else "Fit it")
        self.fit.setToolTip(_OPEN if is_new else _FIT)
        self.leave.setVisible(is_new)

    @Slot()
    def _on_resize_clicked(self) -> None:
        if self._fitted is not None:
            self.fitted.emit(self._fitted)
