"""The sprites that a model made."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QStackedWidget, QWidget

from studio.app import parts
from studio.app.answers import SpritesColoured
from studio.app.jobs import Picked
from studio.app.widgets import labels
from studio.app.widgets.flow import Flow
from studio.app.widgets.sprite_grid import SpriteGrid
from studio.core import wording

_FILES = "Save each sprite, or each selected one, as a PNG file."
_SHEET = "Save all sprites, or the selected ones, as one picture. (Ctrl+S)"


class Results(QWidget):
    """A grid with what it takes to keep what is in it."""

    def __init__(self) -> None:
        super().__init__()
        self._made: SpritesColoured | None = None
        self._class_names: tuple[str, ...] = ()
        self.grid = SpriteGrid()
        self.grid.set_zoom(3)
        self.save_files = parts.button("Save PNG files…", _FILES, "save")
        self.save_sheet = parts.button("Save sheet…", _SHEET, "save")
        self._title = labels.heading("New sprites")
        self._facts = labels.caption("")
        self._stack = QStackedWidget()
        empty = labels.caption("Press Generate, and new sprites appear here. It works while a training runs, too.")
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack.addWidget(parts.panel(parts.column(1, empty, 1)))
        self._stack.addWidget(self.grid)
        buttons = Flow(parts.GRID, parts.GRID)
        for button in (self.save_files, self.save_sheet):
            buttons.addWidget(button)
        head = parts.row(self._title, buttons)
        head.setStretch(0, 1)
        body = parts.column(head, self._facts, self._stack)
        body.setStretch(2, 1)
        self.setLayout(body)
        self.grid.selection_changed.connect(self._refresh)
        self._refresh()

    def show_sprites(self, made: SpritesColoured, class_names: tuple[str, ...]) -> None:
        """Show what was made; the same sprites in other colours take the place of those on show."""
        again = self._made is not None and made.labels is self._made.labels
        self._made = made
        of = f", in the colours of {made.palette}" if made.palette else ""
        self._facts.setText(f"{made.model}, seed {made.seed}{of}")
        if again:
            self.grid.replace_pixels(made.sprites)
            return
        self._class_names = class_names
        self.grid.set_sprites(made.sprites, names=self._names(), labels=made.labels, class_names=class_names)
        self._title.setText(wording.count(len(made.sprites), "new sprite"))
        self._stack.setCurrentIndex(1)
        self._refresh()

    def to_save(self) -> Picked | None:
        """The selected sprites, or all; None when there are none."""
        if self._made is None:
            return None
        chosen = self.grid.selected() or list(range(len(self._made.sprites)))
        names = self._names()
        about = {"Model": self._made.model, "Seed": str(self._made.seed)}
        if self._made.palette:
            about["Palette"] = self._made.palette
        return Picked(self._made.sprites[chosen], [names[index] for index in chosen], about)

    def name(self) -> str:
        """What to call a file of these sprites."""
        return f"{self._made.model.replace(',', '')} seed {self._made.seed}" if self._made else "sprites"

    def _class_of(self, label: int) -> str:
        return self._class_names[label] if 0 <= label < len(self._class_names) else "any"

    def _names(self) -> list[str]:
        assert self._made is not None
        stems = [self._class_of(label).rpartition("/")[2] for label in self._made.labels]
        return [f"{stem} {self._made.seed} {number:04d}" for number, stem in enumerate(stems)]

    @Slot()
    def _refresh(self) -> None:
        why_not = "" if self._made is not None else "There are no sprites yet: press Generate."
        parts.enable(self.save_files, why_not, _FILES)
        parts.enable(self.save_sheet, why_not, _SHEET)
        selected = self.grid.selected_count() if self._made is not None else 0
        files = wording.count(selected, "PNG file") if selected else "PNG files"
        parts.relabel(self.save_files, f"Save {files}…")
