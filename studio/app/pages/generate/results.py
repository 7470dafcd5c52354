"""What a model drew: a grid of sprites, what may be done with them, and saving them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QButtonGroup, QLabel, QMenu, QStackedWidget, QToolButton, QWidget

from studio.app.background.job_events import SpritesColoured
from studio.app.background.model_jobs import SpriteSelection
from studio.app.pages.generate import carrying
from studio.app.state.carried_files import CarriedFiles
from studio.app.state.kept import KeptSprites
from studio.app.widgets import factory
from studio.app.widgets.layout import Flow
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.core import wording
from studio.core.events import Rgba
from studio.data.editing import NamedSprite

if TYPE_CHECKING:
    from studio.data.colour.construction import Badge
    from studio.recipes.base import Ability

_FILES = "Save each sprite, or each selected one, as a PNG file."
_SHEET = "Save all sprites, or the selected ones, in one file: a sheet, GIF, APNG, for Aseprite or Godot. (Ctrl+S)"
_EDIT = "Take the selected sprite into the editor: vary it, or change a part of it. (Enter, or double-click)"
_COPY = "Copy the selected sprites, to paste them in another program; or drag them there. (Ctrl+C)"
_BETWEEN = "Draw the frames that lead from one of two selected sprites to the other."
_LIKE = "Draw new sprites that have something of two of the selected ones each."
_OPEN = "Take a picture file into the editor; it can be dropped here, or pasted (Ctrl+V), as well."
_BLANK = "Begin with an empty sprite: draw rough blobs of colour, and the model makes sprites of them."
_KEEP = "Keep the selected sprites: they survive the next drawing, and closing. (K)"
_REJECT = "Take the selected sprites away. (X) R draws others."
_KEPT = "The sprites that you kept, of this size."
_FRAMES = (2, 3, 4, 6, 8)


@dataclass(frozen=True, eq=False)
class _Shown:
    """Sprites in the grid: uint8 [N, S, S, 4], a name, a class and a source of each (as in NamedSprite), and what is
    said of them all.

    name: what to call a file of them. palette, is_animation: as in SpriteSelection.
    """

    sprites: Rgba
    names: Sequence[str]
    classes: Sequence[str]
    sources: Sequence[str]
    about: dict[str, str]
    name: str
    palette: NDArray[np.uint8] | None = None
    is_animation: bool = False


class Results(QWidget):
    """A grid of new sprites or of the kept ones, with what it takes to save them, or to go on from there.

    edit_wanted: the number of a sprite. between_wanted: how many frames. like_wanted: more like those selected.
    roll_wanted: the same again, other sprites. failed: what went wrong (OSError).
    """

    edit_wanted = Signal(int)
    between_wanted = Signal(int)
    like_wanted = Signal()
    roll_wanted = Signal()
    failed = Signal(object)

    def __init__(self, kept: KeptSprites, carried: CarriedFiles, neighbours: QWidget) -> None:
        """neighbours: what is shown beside the grid."""
        super().__init__()
        self._neighbours = neighbours
        self._kept = kept
        self._carried = carried
        self._made: SpritesColoured | None = None
        self._new: _Shown | None = None
        self._rejected: set[int] = set()  # of the new ones
        self._size = 0  # of the chosen model's sprites
        self._can: frozenset[Ability] = frozenset()
        self._is_editing = False
        self.grid = SpriteGrid()
        self.grid.set_zoom(3)
        self.grid.view.can_drag = True
        self.new_tab, self.kept_tab = _tab("New", "The sprites that were drawn last."), _tab("Kept", _KEPT)
        self.keep = factory.button("Keep", _KEEP)
        self.reject = factory.button("Reject", _REJECT)
        self.copy = factory.button("Copy", _COPY)
        self.save_files = factory.button("Save PNG files…", _FILES)
        self.save_sheet = factory.button("Save as…", _SHEET)
        self.open = factory.button("Open…", _OPEN)
        self.blank = factory.button("Sketch", _BLANK)
        self.edit = factory.button("Edit", _EDIT)
        self.between = factory.button("In between", _BETWEEN)
        self.like = factory.button("More like these", _LIKE)
        self._frames = QMenu(self.between)
        for count in _FRAMES:
            self._frames.addAction(f"{count} frames").setData(count)
        self.between.setMenu(self._frames)
        self._new_title = "New sprites"
        self._title, self._facts = factory.RunningLabel("heading"), factory.RunningLabel("muted")
        self._badges = Flow(factory.GRID // 2, factory.GRID // 2)
        self._badge_labels: list[QLabel] = []
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self._show_tab()

    def show_sprites(
        self, made: SpritesColoured, class_names: tuple[str, ...], title: str = "", *, is_animation: bool = False
    ) -> None:
        """Show what was made; the same sprites in other colours take the place of those on show."""
        again = self._made is not None and made.labels is self._made.labels
        self._made, self._new = made, _as_shown(made, class_names, is_animation=is_animation)
        self._new_title = title or wording.count(len(made.sprites), "new sprite")
        if again and self.new_tab.isChecked():
            self.grid.replace_pixels(made.sprites)
            self._describe()
            return
        self._rejected = set()
        self.new_tab.setChecked(True)
        self._show_tab()

    def offer(self, can: frozenset[Ability], size: int, *, is_editing: bool) -> None:
        """Offer what the chosen model can do; size: of its sprites. is_editing: there is a sprite in the editor."""
        is_other = size != self._size
        self._can, self._size, self._is_editing = can, size, is_editing
        if is_other:
            self._show_tab()
        self._refresh()

    def sprite(self, number: int) -> NamedSprite:
        """A sprite of those on show."""
        shown = self._shown()
        assert shown is not None
        return NamedSprite(shown.sprites[number], shown.names[number], shown.classes[number], shown.sources[number])

    def corner_tiles(self) -> Rgba | None:
        """The set of corner tiles that is in the grid, uint8 [16, S, S, 4]; None where something else is."""
        made = self._made if self.new_tab.isChecked() else None
        return made.sprites if made is not None and made.titles else None

    def to_save(self) -> SpriteSelection | None:
        """The selected sprites, or all that were not rejected; None when there are none."""
        shown = self._shown()
        if shown is None:
            return None
        chosen = self.grid.selected() or self._standing()
        if not chosen:
            return None
        names, classes, sources = (
            [all_of[index] for index in chosen] for all_of in (shown.names, shown.classes, shown.sources)
        )
        return SpriteSelection(
            shown.sprites[chosen], names, shown.about, classes, shown.palette, is_animation=shown.is_animation,
            sources=sources,
        )  # fmt: skip

    def name(self) -> str:
        """What to call a file of these sprites."""
        shown = self._shown()
        return shown.name if shown is not None else "sprites"

    def _shown(self) -> _Shown | None:
        """What is in the grid."""
        if self.new_tab.isChecked():
            return self._new
        kept = self._kept.of_size(self._size)
        if not kept:
            return None
        sprites = np.stack([each.edit.sprite for each in kept])
        names, classes, sources = zip(*((each.name, each.class_name, each.source) for each in kept), strict=True)
        return _Shown(sprites, names, classes, sources, {}, "kept sprites")

    def _standing(self) -> list[int]:
        """The sprites in the grid that were not rejected."""
        shown = self._shown()
        count = len(shown.sprites) if shown is not None else 0
        return [number for number in range(count) if not (self.new_tab.isChecked() and number in self._rejected)]

    @Slot()
    def _show_tab(self) -> None:
        """Fill the grid anew."""
        shown = self._shown()
        self._stack.setCurrentIndex(0 if shown is None else 1)
        if shown is not None:
            captions = [
                f"{name} – {label}" if label else name for name, label in zip(shown.names, shown.classes, strict=True)
            ]
            self.grid.set_sprites(shown.sprites, names=captions)
            self.grid.set_visible(self._standing() if self._rejected and self.new_tab.isChecked() else None)
        self._describe()
        self._refresh()

    def _describe(self) -> None:
        """Say what is in the grid."""
        made = self._made if self.new_tab.isChecked() else None
        self._show_badges(made.badges if made is not None else ())
        of = f", in the colours of {made.palette}" if made is not None and made.palette else ""
        self._facts.say(f"{made.model}, seed {made.seed}{of}" if made is not None else "")
        kept = wording.count(len(self._kept.of_size(self._size)), "kept sprite")
        self._title.say(self._new_title if self.new_tab.isChecked() else kept)

    def _lay_out(self) -> None:
        empty = factory.caption("Press Generate, and new sprites appear here. It works while a training runs, too.")
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack.addWidget(factory.panel(factory.column(1, empty, 1)))
        self._stack.addWidget(self.grid)
        buttons = Flow(factory.GRID, factory.GRID)
        for button in (
            self.keep, self.reject, self.edit, self.between, self.like, self.open, self.blank, self.copy,
            self.save_files, self.save_sheet,
        ):  # fmt: skip
            buttons.addWidget(button)
        tabs = QButtonGroup(self)
        for tab in (self.new_tab, self.kept_tab):
            tabs.addButton(tab)
        self.new_tab.setChecked(True)
        head = factory.row(self._title, self._facts, self.new_tab, self.kept_tab)
        head.setStretch(0, 1)
        head.setStretch(1, 1)
        middle = factory.row(self._stack, self._neighbours)
        middle.setStretch(0, 1)
        body = factory.column(head, self._badges, buttons, middle)
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

    def _connect(self) -> None:
        self.grid.selection_changed.connect(self._refresh)
        self.grid.activated.connect(self._edit)
        self.grid.view.drag_begun.connect(self._drag)
        self.copy.clicked.connect(self._copy)
        self.edit.clicked.connect(self._edit_selected)
        self.like.clicked.connect(self.like_wanted)
        self.keep.clicked.connect(self._keep_selected)
        self.reject.clicked.connect(self._reject_selected)
        self.new_tab.clicked.connect(self._show_tab)
        self.kept_tab.clicked.connect(self._show_tab)
        self._kept.changed.connect(self._show_kept)
        self._frames.triggered.connect(self._ask_between)
        keys = (
            ("K", self._keep_selected),
            ("X", self._reject_selected),
            ("R", self.roll_wanted),
            ("Ctrl+C", self._copy),
        )
        for key, slot in keys:
            shortcut = QShortcut(QKeySequence(key), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(slot)

    @Slot()
    def _drag(self) -> None:
        self._carry(lambda picked: carrying.drag(picked, self._carried, self.grid.view))

    @Slot()
    def _copy(self) -> None:
        if self.grid.selected():
            self._carry(lambda picked: carrying.copy(picked, self._carried))

    def _carry(self, away: Callable[[SpriteSelection], None]) -> None:
        picked = self.to_save()
        if picked is not None:
            try:
                away(picked)
            except OSError as error:
                self.failed.emit(error)

    @Slot()
    def _keep_selected(self) -> None:
        if self.new_tab.isChecked():
            for number in self.grid.selected():
                self._kept.add(self.sprite(number))

    @Slot()
    def _reject_selected(self) -> None:
        chosen = self.grid.selected()
        if self.new_tab.isChecked():
            self._rejected |= set(chosen)
            self.grid.set_visible(self._standing())
        elif chosen:
            kept = self._kept.of_size(self._size)
            self._kept.remove([kept[number] for number in chosen])

    @Slot()
    def _show_kept(self) -> None:
        if self.kept_tab.isChecked():
            self._show_tab()
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        is_new, shown = self.new_tab.isChecked(), self._stack.currentIndex() == 1
        why_not = "" if shown else "There are no sprites yet: press Generate."
        selected = self.grid.selected_count() if shown else 0
        none = "" if selected else "Select some sprites first."
        count = len(self._kept.of_size(self._size))
        self.kept_tab.setText(f"Kept ({count:,})" if count else "Kept")
        factory.enable(self.keep, why_not or none or ("" if is_new else "They are kept."), _KEEP)
        factory.enable(self.reject, why_not or none, _REJECT)
        factory.enable(self.copy, why_not or none, _COPY)
        factory.enable(self.save_files, why_not, _FILES)
        factory.enable(self.save_sheet, why_not, _SHEET)
        files = wording.count(selected, "PNG file") if selected else "PNG files"
        factory.relabel(self.save_files, f"Save {files}…")
        factory.enable(self.edit, why_not or ("" if selected == 1 else "Select one sprite first."), _EDIT)
        two = "" if selected == 2 or (selected == 1 and self._is_editing) else "Select two sprites first."
        factory.enable(self.between, why_not or two, _BETWEEN)
        factory.enable(self.like, why_not or ("" if selected > 1 else "Select two sprites or more first."), _LIKE)
        for button in (self.open, self.blank, self.edit):
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
        words, tip = f"{badge.title}, except where nothing changed", "Pixels that were to stay are as they were."
    elif fails:
        words, tip = f"{badge.title}: {badge.holds} of {badge.count}", "Checked on each of these sprites."
    made = factory.badge(words)
    factory.describe(made, words, tip)
    return made


def _tab(words: str, tip: str) -> QToolButton:
    made = QToolButton()
    made.setText(words)
    made.setCheckable(True)
    factory.describe(made, words, tip)
    return made


def _as_shown(made: SpritesColoured, class_names: tuple[str, ...], *, is_animation: bool) -> _Shown:
    """New sprites, with names after their classes."""
    classes = [class_names[label] if 0 <= label < len(class_names) else "" for label in made.labels]
    stems = [name.rpartition("/")[2] or "any" for name in classes]
    names = [f"{title} {made.seed}" for title in made.titles] or [
        f"{stem} {made.seed} {number:04d}" for number, stem in enumerate(stems)
    ]
    about = {"Model": made.model, "Seed": str(made.seed), **({"Palette": made.palette} if made.palette else {})}
    name = f"{made.model.replace(',', '')} seed {made.seed}"
    sources = [made.source] * len(names)
    return _Shown(made.sprites, names, classes, sources, about, name, made.colours, is_animation)
