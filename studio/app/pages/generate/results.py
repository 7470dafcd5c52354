"""What a model drew: a grid of sprites, what may be done with them, and saving them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel, QMenu, QStackedWidget, QWidget

from studio.app.background.job_events import SpritesColoured
from studio.app.background.model_jobs import SpriteSelection
from studio.app.widgets import factory
from studio.app.widgets.layout import Flow
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.core import wording
from studio.core.events import Rgba

if TYPE_CHECKING:
    from studio.data.colour.construction import Badge
    from studio.recipes.base import Ability

_FILES = "Save each sprite, or each selected one, as a PNG file."
_SHEET = "Save all sprites, or the selected ones, in one file: a sheet, GIF, APNG, for Aseprite or Godot. (Ctrl+S)"
_EDIT = "Take the selected sprite into the editor: vary it, or change a part of it. (Enter, or double-click)"
_BETWEEN = "Draw the frames that lead from one of two selected sprites to the other."
_LIKE = "Draw new sprites that have something of two of the selected ones each."
_OPEN = "Take a picture file into the editor; it can be dropped here, or pasted (Ctrl+V), as well."
_FRAMES = (2, 3, 4, 6, 8)


class Results(QWidget):
    """A grid with what it takes to keep what is in it, or to go on from there.

    edit_wanted: the number of a sprite. between_wanted: how many frames. like_wanted: more like those selected.
    """

    edit_wanted = Signal(int)
    between_wanted = Signal(int)
    like_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._made: SpritesColoured | None = None
        self._class_names: tuple[str, ...] = ()
        self._can: frozenset[Ability] = frozenset()
        self._is_editing = self._is_animation = False
        self.grid = SpriteGrid()
        self.grid.set_zoom(3)
        self.save_files = factory.button("Save PNG files…", _FILES, "save")
        self.save_sheet = factory.button("Save as…", _SHEET, "save")
        self.open = factory.button("Open a sprite…", _OPEN, "open")
        self.edit = factory.button("Edit", _EDIT, "pencil")
        self.between = factory.button("In between", _BETWEEN)
        self.like = factory.button("More like these", _LIKE)
        self._frames = QMenu(self.between)
        for count in _FRAMES:
            self._frames.addAction(f"{count} frames").setData(count)
        self.between.setMenu(self._frames)
        self._title = factory.heading("New sprites")
        self._facts = factory.caption("")
        self._badges = Flow(factory.GRID // 2, factory.GRID // 2)
        self._badge_labels: list[QLabel] = []
        self._stack = QStackedWidget()
        self._lay_out()
        self.grid.selection_changed.connect(self._refresh)
        self.grid.activated.connect(self._edit)
        self.edit.clicked.connect(self._edit_selected)
        self.like.clicked.connect(self.like_wanted)
        self._frames.triggered.connect(self._ask_between)
        self._refresh()

    def show_sprites(
        self, made: SpritesColoured, class_names: tuple[str, ...], title: str = "", *, is_animation: bool = False
    ) -> None:
        """Show what was made; the same sprites in other colours take the place of those on show."""
        self._is_animation = is_animation
        self._show_badges(made.badges)
        again = self._made is not None and made.labels is self._made.labels
        self._made = made
        of = f", in the colours of {made.palette}" if made.palette else ""
        self._facts.setText(f"{made.model}, seed {made.seed}{of}")
        if again:
            self.grid.replace_pixels(made.sprites)
            return
        self._class_names = class_names
        self.grid.set_sprites(made.sprites, names=self._names(), labels=made.labels, class_names=class_names)
        self._title.setText(title or wording.count(len(made.sprites), "new sprite"))
        self._stack.setCurrentIndex(1)
        self._refresh()

    def offer(self, can: frozenset[Ability], *, is_editing: bool) -> None:
        """Offer what the chosen model can do; is_editing: there is a sprite in the editor."""
        self._can, self._is_editing = can, is_editing
        self._refresh()

    def sprite(self, number: int) -> tuple[Rgba, str, str]:
        """A sprite of those on show, uint8 [S, S, 4], its name and its class."""
        assert self._made is not None
        label = int(self._made.labels[number])
        return self._made.sprites[number], self._names()[number], self._class_names[label] if label >= 0 else ""

    def to_save(self) -> SpriteSelection | None:
        """The selected sprites, or all; None when there are none."""
        if self._made is None:
            return None
        chosen = self.grid.selected() or list(range(len(self._made.sprites)))
        names = self._names()
        about = {"Model": self._made.model, "Seed": str(self._made.seed)}
        if self._made.palette:
            about["Palette"] = self._made.palette
        classes = [self._class_of(self._made.labels[index]) for index in chosen]
        return SpriteSelection(
            self._made.sprites[chosen], [names[index] for index in chosen], about, classes, self._made.colours,
            is_animation=self._is_animation,
        )  # fmt: skip

    def name(self) -> str:
        """What to call a file of these sprites."""
        return f"{self._made.model.replace(',', '')} seed {self._made.seed}" if self._made else "sprites"

    def _lay_out(self) -> None:
        empty = factory.caption("Press Generate, and new sprites appear here. It works while a training runs, too.")
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack.addWidget(factory.panel(factory.column(1, empty, 1)))
        self._stack.addWidget(self.grid)
        buttons = Flow(factory.GRID, factory.GRID)
        for button in (self.open, self.edit, self.between, self.like, self.save_files, self.save_sheet):
            buttons.addWidget(button)
        head = factory.row(self._title, self._facts)
        head.setStretch(1, 1)
        body = factory.column(head, self._badges, buttons, self._stack)
        body.setStretch(3, 1)
        self.setLayout(body)

    def _show_badges(self, badges: tuple[Badge, ...]) -> None:
        """What was checked on the sprites, and of how many it holds."""
        for label in self._badge_labels:
            self._badges.removeWidget(label)
            label.deleteLater()
        self._badge_labels = [_badge(badge) for badge in badges]
        for label in self._badge_labels:
            self._badges.addWidget(label)

    def _class_of(self, label: int) -> str:
        return self._class_names[label] if 0 <= label < len(self._class_names) else "any"

    def _names(self) -> list[str]:
        assert self._made is not None
        stems = [self._class_of(label).rpartition("/")[2] for label in self._made.labels]
        return [f"{stem} {self._made.seed} {number:04d}" for number, stem in enumerate(stems)]

    @Slot()
    def _refresh(self) -> None:
        why_not = "" if self._made is not None else "There are no sprites yet: press Generate."
        selected = self.grid.selected_count() if self._made is not None else 0
        factory.enable(self.save_files, why_not, _FILES)
        factory.enable(self.save_sheet, why_not, _SHEET)
        files = wording.count(selected, "PNG file") if selected else "PNG files"
        factory.relabel(self.save_files, f"Save {files}…")
        factory.enable(self.edit, why_not or ("" if selected == 1 else "Select one sprite first."), _EDIT)
        two = "" if selected == 2 or (selected == 1 and self._is_editing) else "Select two sprites first."
        factory.enable(self.between, why_not or two, _BETWEEN)
        factory.enable(self.like, why_not or ("" if selected > 1 else "Select two sprites or more first."), _LIKE)
        for button in (self.open, self.edit):
            button.setVisible("vary" in self._can)
        for button in (self.between, self.like):
            button.setVisible("blend" in self._can)

    @Slot(int)
    def _edit(self, number: int) -> None:
        if "vary" in self._can:
            self.edit_wanted.emit(number)

    @Slot()
    def _edit_selected(self) -> None:
        self._edit(self.grid.selected()[0])

    @Slot(QAction)
    def _ask_between(self, action: QAction) -> None:
        self.between_wanted.emit(action.data())


def _badge(badge: Badge) -> QLabel:
    """A check in words: of how many sprites it holds, and why not of the others."""
    fails = badge.count - badge.holds
    words, tip = badge.title, f"{badge.title}: checked on each of these sprites."
    if fails and fails == badge.but_kept:
        words, tip = f"{badge.title}, but for kept pixels", "What you keep stays as it is."
    elif fails:
        words, tip = f"{badge.title}: {badge.holds} of {badge.count}", "Checked on each of these sprites."
    made = factory.badge(words)
    factory.describe(made, words, tip)
    return made
