"""Buttons for the sprites in the results grid: keep, reject, edit, copy, save."""

from __future__ import annotations

from PySide6.QtWidgets import QMenu, QWidget

from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.core import formatting

_REJECT = "Hide the selected sprites (X). Undo (Ctrl+Z) shows them again; R generates others."
_SKETCH = "Start an empty sprite: paint rough blobs, and the model draws sprites from them."
_COPY = "Copy the selected sprites to paste or drag them into another program. (Ctrl+C)"
_SHEET = "Save the selected sprites, or all, as one file: sheet, GIF, APNG, Aseprite or Godot. (Ctrl+S)"
_FRAME_COUNTS = (2, 3, 4, 6, 8)


class ResultButtons(QWidget):
    """The result buttons in a wrapping row. frame_counts: the Tween menu; an action's data is a number of frames."""

    def __init__(self) -> None:
        super().__init__()
        self.keep = factory.button("Keep", "Keep the selected sprites, even after closing the window. (K)")
        self.reject = factory.button("Reject", _REJECT)
        self.edit = factory.button("Edit", "Open the selected sprite in the editor. (Enter, or double-click)")
        self.between = factory.button("Tween", "Generate the frames between two selected sprites.")
        self.like = factory.button("Similar", "Generate sprites that mix the selected sprites.")
        self.open = factory.button("Open…", "Open an image file in the editor. You can also drop or paste it (Ctrl+V).")
        self.new_sprite = factory.button("Sketch", _SKETCH)
        self.copy = factory.button("Copy", _COPY)
        self.save_files = factory.button("Save PNG files…", "Save each selected sprite, or all, as a PNG file.")
        self.save_sheet = factory.button("Save as…", _SHEET)
        self.frame_counts = QMenu(self.between)
        for count in _FRAME_COUNTS:
            self.frame_counts.addAction(f"{count} frames").setData(count)
        self.between.setMenu(self.frame_counts)
        on_selected = (self.keep, self.reject, self.edit, self.between, self.like)
        others = (self.open, self.new_sprite, self.copy, self.save_files, self.save_sheet)
        self.setLayout(FlowLayout(factory.GRID, factory.GRID, *on_selected, *others))

    def set_abilities(self, can: frozenset[str]) -> None:
        """Show the buttons that the chosen model supports."""
        for button in (self.open, self.new_sprite, self.edit):
            button.setVisible("vary" in can)
        for button in (self.between, self.like):
            button.setVisible("blend" in can)

    def refresh(self, no_sprites: str, selected: int, to_save: int, *, is_new: bool, is_editing: bool) -> None:
        """Enable each button, or disable it and show the reason as its tooltip.

        no_sprites: why the grid is empty; '' for a filled grid. selected, to_save: numbers of sprites. is_new: the grid
        shows new sprites, not kept ones. is_editing: the editor holds a sprite, which can start a tween.
        """
        none = no_sprites or ("" if selected else "Select some sprites first.")
        factory.set_enabled(self.keep, none or ("" if is_new else "Already kept."))
        factory.set_enabled(self.reject, none)
        factory.set_enabled(self.copy, none)
        factory.set_enabled(self.save_files, no_sprites)
        factory.set_enabled(self.save_sheet, no_sprites)
        files = formatting.count(to_save, "PNG file") if to_save else "PNG files"
        factory.set_button_text(self.save_files, f"Save {files}…")
        sprites = f"Save {formatting.count(to_save, 'sprite')} as…" if to_save else "Save as…"
        factory.set_button_text(self.save_sheet, sprites)
        for button in (self.save_files, self.save_sheet):  # only grow: the other buttons must not move
            button.setMinimumWidth(max(button.minimumWidth(), button.sizeHint().width()))
        factory.set_enabled(self.edit, no_sprites or ("" if selected == 1 else "Select one sprite first."))
        has_ends = selected == 2 or (selected == 1 and is_editing)
        factory.set_enabled(self.between, no_sprites or ("" if has_ends else "Select two sprites first."))
        factory.set_enabled(self.like, no_sprites or ("" if selected > 1 else "Select two or more sprites."))
