"""What a model drew: a grid of sprites, what may be done with them, and saving them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction, QKeySequence, QShortcut
from PySide6.QtWidgets import QButtonGroup, QMenu, QStackedWidget, QToolButton, QWidget

from studio.app.background.job_events import SpritesColoured
from studio.app.background.model_jobs import MOST_RECENT, MOST_RECENT_MB, SpriteSelection
from studio.app.pages.generate.badges import Badges
from studio.app.pages.generate.batches import DrawRequest, ResultHistory, ShownSprites, shown_kept
from studio.app.pages.generate.drag_and_drop import SpriteDragger
from studio.app.pages.generate.rejections import RejectionHistory
from studio.app.state.models.kept import KeptSprites
from studio.app.state.sprites.drag_files import DragFiles
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.core import formatting
from studio.core.arrays import Rgba
from studio.data.pixels.editing import NamedSprite

if TYPE_CHECKING:
    from studio.recipes.capabilities import Capability

_FILES = "Save each of them as a PNG file of its own: those that are selected, or all."
_SHEET = "Save them in one file, those that are selected or all: sheet, GIF, APNG, for Aseprite or Godot. (Ctrl+S)"
_EDIT = "Take the selected sprite into the editor: vary it, or change a part of it. (Enter, or double-click)"
_COPY = "Copy the selected sprites, to paste them in another program; or drag them there. (Ctrl+C)"
_BETWEEN = "Draw the frames that lead from one of two selected sprites to the other."
_LIKE = "Draw new sprites that have something of two of the selected ones each."
_OPEN = "Take a picture file into the editor; it can be dropped here, or pasted (Ctrl+V), as well."
_BLANK = "Begin with an empty sprite: draw rough blobs of colour, and the model makes sprites of them."
_KEEP = "Keep the selected sprites, and go on to the next: kept ones survive the next drawing, and closing. (K)"
_REJECT = "Take the selected sprites away, and go on to the next; Ctrl+Z brings them back. (X) R draws others."
_KEPT = "The sprites that you kept of this size, whichever model drew them."
_BACK = f"Previous batch; {MOST_RECENT} batches or {MOST_RECENT_MB} MB are kept. (Alt+Left)"
_FORWARD = "Next batch. (Alt+Right)"
_EMPTY = "Press Generate, and new sprites appear here. It works while a training runs, too."
_FRAMES = (2, 3, 4, 6, 8)
_NOTHING = np.zeros((0, 1, 1, 4), np.uint8)


class Results(QWidget):
    """A grid of new or kept sprites, with buttons to keep, edit, copy and save them.

    edit_requested: the index of a sprite. between_requested: number of frames. like_requested, roll_requested: draw
    sprites like the selected ones, or the same batch with another seed. failed: an OSError. undo_changed: `undo_title`
    has changed.
    """

    edit_requested = Signal(int)
    between_requested = Signal(int)
    like_requested = Signal()
    roll_requested = Signal()
    failed = Signal(object)
    undo_changed = Signal()

    def __init__(self, kept: KeptSprites, carried: DragFiles, neighbours: QWidget) -> None:
        """neighbours: what is shown beside the grid."""
        super().__init__()
        self._neighbours = neighbours
        self._kept = kept
        self._batches = ResultHistory()
        self._rejections = RejectionHistory(kept)
        self._size = 0  # of the chosen model's sprites
        self._capabilities: frozenset[Capability] = frozenset()
        self._is_editing = False
        self.grid = SpriteGrid()
        self.grid.set_zoom(3)
        self._carrier = SpriteDragger(self.grid.view, carried, self.to_save)
        self.new_tab, self.kept_tab = _tab("New", "The sprites that were drawn last."), _tab("Kept", _KEPT)
        self.back = factory.tool_button("chevron-left", "Back", _BACK)
        self.forward = factory.tool_button("chevron-right", "Forward", _FORWARD)
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
        self._title, self._facts = factory.ElidedLabel("heading"), factory.ElidedLabel("muted")
        self.badges = Badges()
        self._empty = factory.caption(_EMPTY)
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self._refresh_grid()

    def show_sprites(self, made: SpritesColoured, asked: DrawRequest) -> None:
        """Show what was made; the same sprites in other colours take the place of what they were."""
        before = self._batches.current
        batch = self._batches.add(made, asked)
        is_on_show = self.new_tab.isChecked() and batch is self._batches.current
        if is_on_show and batch is before:
            self.grid.replace_pixels(made.sprites)
            self._describe()
        elif batch is not before and batch is self._batches.current:
            self.new_tab.setChecked(True)
            self._refresh_grid()

    def asked(self) -> DrawRequest | None:
        """What the new sprites are that are on show, or were last."""
        return self._batches.current.asked if self._batches.current is not None else None

    def made(self) -> SpritesColoured | None:
        """The new sprites that are on show, or were last."""
        return self._batches.current.made if self._batches.current is not None else None

    def undo_title(self) -> str:
        """What `undo` brings back; empty when there is nothing."""
        return self._rejections.title()

    def undo(self) -> None:
        """Bring back the sprites that were rejected last, and select them."""
        last = self._rejections.undo()
        if last.batch is None:
            back = [kept for _, kept in last.kept]
            shown = [number for number, kept in enumerate(self._kept.of_size(self._size)) if kept in back]
        else:
            shown = list(last.numbers) if self._batches.show(last.batch) else []
        if shown:
            (self.kept_tab if last.batch is None else self.new_tab).setChecked(True)
            self._refresh_grid()
            self.grid.go_to(shown[0])
            if len(shown) > 1:
                self.grid.select(shown)
            self.grid.setFocus()
        self.undo_changed.emit()

    def offer(self, capabilities: frozenset[Capability], size: int, *, is_editing: bool) -> None:
        """Offer what the chosen model can do; size: of its sprites. is_editing: there is a sprite in the editor."""
        is_other = size != self._size
        self._capabilities, self._size, self._is_editing = capabilities, size, is_editing
        if is_other:
            self._refresh_grid()
        self._refresh()

    def sprite(self, number: int) -> NamedSprite:
        """A sprite of those on show."""
        shown = self._shown()
        assert shown is not None
        return NamedSprite(shown.sprites[number], shown.names[number], shown.classes[number], shown.sources[number])

    def corner_tiles(self) -> Rgba | None:
        """The set of corner tiles that is in the grid, uint8 [16, S, S, 4]; None where something else is."""
        made = self.made() if self.new_tab.isChecked() else None
        return made.sprites if made is not None and made.titles else None

    def to_save(self) -> SpriteSelection | None:
        """The selected sprites, or all that were not rejected; None when there are none."""
        shown = self._shown()
        if shown is None:
            return None
        chosen = self.grid.selected() or self._remaining()
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

    def _shown(self) -> ShownSprites | None:
        """What is in the grid."""
        if self.new_tab.isChecked():
            return self._batches.current.shown if self._batches.current is not None else None
        kept = self._kept.of_size(self._size)
        return shown_kept(kept) if kept else None

    def _remaining(self) -> list[int]:
        """The sprites in the grid that were not rejected."""
        shown = self._shown()
        count = len(shown.sprites) if shown is not None else 0
        gone = self._rejected()
        return [number for number in range(count) if number not in gone]

    def _rejected(self) -> set[int]:
        """Those in the grid that were rejected."""
        batch = self._batches.current if self.new_tab.isChecked() else None
        return batch.rejected if batch is not None else set()

    @Slot()
    def _refresh_grid(self) -> None:
        """Fill the grid anew."""
        shown = self._shown()
        self._stack.setCurrentIndex(0 if shown is None else 1)
        if shown is not None:
            captions = [
                f"{name} – {label}" if label else name for name, label in zip(shown.names, shown.classes, strict=True)
            ]
            self.grid.set_sprites(shown.sprites, names=captions)
            self.grid.set_visible(self._remaining() if self._rejected() else None)
        else:
            self.grid.set_sprites(_NOTHING)
        self._describe()
        self._refresh()

    def _describe(self) -> None:
        """Say what is in the grid."""
        batch = self._batches.current if self.new_tab.isChecked() else None
        made = batch.made if batch is not None else None
        self.badges.show_result(made)
        of = f", in the colours of {made.palette}" if made is not None and made.palette else ""
        self._facts.show_text(f"{made.model}, seed {made.seed}{of}" if made is not None else "")
        self._mark_kept()
        if self.new_tab.isChecked():
            self._title.show_text(batch.title() if batch is not None else "New sprites")
            self._empty.setText(_EMPTY)
            return
        pixels = f"{self._size} x {self._size} pixels"
        self._title.show_text(
            f"{formatting.count(len(self._kept.of_size(self._size)), 'kept sprite')}, {self._size} x {self._size}"
        )
        others = self._kept.count_of_other_sizes(self._size)
        more = (
            f"{formatting.count(others, 'kept sprite')} of other sizes: choose a model of that size." if others else ""
        )
        words = f"No sprite of {pixels} is kept yet. Select new ones and press K, or Keep, and they stay here."
        self._empty.setText(f"{words}\n{more}")

    def _mark_kept(self) -> None:
        """New sprites that are kept are marked."""
        made = self.made() if self.new_tab.isChecked() else None
        self.grid.set_marked(self._kept.among(made.sprites) if made is not None else ())

    def _lay_out(self) -> None:
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack.addWidget(factory.panel(factory.column(1, self._empty, 1)))
        self._stack.addWidget(self.grid)
        buttons = FlowLayout(factory.GRID, factory.GRID)
        for button in (
            self.keep, self.reject, self.edit, self.between, self.like, self.open, self.blank, self.copy,
            self.save_files, self.save_sheet,
        ):  # fmt: skip
            buttons.addWidget(button)
        tabs = QButtonGroup(self)
        for tab in (self.new_tab, self.kept_tab):
            tabs.addButton(tab)
        self.new_tab.setChecked(True)
        head = factory.row(self._title, self._facts, self.back, self.forward, self.new_tab, self.kept_tab)
        head.setStretch(0, 1)
        head.setStretch(1, 1)
        middle = factory.row(self._stack, self._neighbours)
        middle.setStretch(0, 1)
        body = factory.column(head, self.badges, buttons, middle)
        body.setStretch(3, 1)
        self.setLayout(body)

    def _connect(self) -> None:
        self.grid.selection_changed.connect(self._refresh)
        self.grid.activated.connect(self._on_activated)
        self._carrier.failed.connect(self.failed)
        self.copy.clicked.connect(self._carrier.copy)
        self.edit.clicked.connect(self._on_edit_clicked)
        self.like.clicked.connect(self.like_requested)
        self.keep.clicked.connect(self._on_keep)
        self.reject.clicked.connect(self._on_reject)
        self.back.clicked.connect(self._on_back)
        self.forward.clicked.connect(self._on_forward)
        self.new_tab.clicked.connect(self._refresh_grid)
        self.kept_tab.clicked.connect(self._refresh_grid)
        self._kept.changed.connect(self._on_kept_changed)
        self._frames.triggered.connect(self._on_frame_count_chosen)
        keys = (
            ("K", self._on_keep),
            ("X", self._on_reject),
            ("R", self.roll_requested),
            ("Ctrl+C", self._carrier.copy),
            ("Alt+Left", self._on_back),
            ("Alt+Right", self._on_forward),
        )
        for key, slot in keys:
            shortcut = QShortcut(QKeySequence(key), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(slot)

    @Slot()
    def _on_keep(self) -> None:
        chosen = self.grid.selected()
        if self.new_tab.isChecked() and chosen:
            self._kept.add(map(self.sprite, chosen))
            self._go_on_after(chosen[-1])

    @Slot()
    def _on_reject(self) -> None:
        chosen, batch = self.grid.selected(), self._batches.current
        if not chosen:
            return
        if self.new_tab.isChecked() and batch is not None:
            self._rejections.reject(batch, chosen)
            self.grid.set_visible(self._remaining(), stays=True)
            self._describe()
            self._go_on_after(chosen[-1])
        else:
            kept = self._kept.of_size(self._size)
            self._rejections.reject_kept([kept[number] for number in chosen])
            self._go_on_after(chosen[-1] - len(chosen))
        self.undo_changed.emit()

    def _go_on_after(self, number: int) -> None:
        """Select the next sprite alone, the last one where there is none, so that the next key is for it."""
        standing = self._remaining()
        if standing:
            self.grid.go_to(next((other for other in standing if other > number), standing[-1]))
        self.grid.setFocus()

    @Slot()
    def _on_back(self) -> None:
        self._go(-1)

    @Slot()
    def _on_forward(self) -> None:
        self._go(1)

    def _go(self, steps: int) -> None:
        """Show another batch of new sprites."""
        if self._batches.can_go(steps):
            self._batches.go(steps)
            self.new_tab.setChecked(True)
            self._refresh_grid()

    @Slot()
    def _on_kept_changed(self) -> None:
        if self.kept_tab.isChecked():
            self._refresh_grid()
        else:
            self._mark_kept()
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        is_new, shown = self.new_tab.isChecked(), self._stack.currentIndex() == 1
        why_not = (
            "" if shown else ("There are no sprites yet: press Generate." if is_new else "No sprites are kept yet.")
        )
        selected = self.grid.selected_count() if shown else 0
        none = "" if selected else "Select some sprites first."
        count = len(self._kept.of_size(self._size))
        self.kept_tab.setText(f"Kept ({count:,})" if count else "Kept")
        factory.set_enabled(self.keep, why_not or none or ("" if is_new else "They are kept."), _KEEP)
        factory.set_enabled(self.reject, why_not or none, _REJECT)
        factory.set_enabled(self.copy, why_not or none, _COPY)
        factory.set_enabled(self.save_files, why_not, _FILES)
        factory.set_enabled(self.save_sheet, why_not, _SHEET)
        saved = selected or (len(self._remaining()) if shown else 0)
        factory.set_button_text(
            self.save_files, f"Save {formatting.count(saved, 'PNG file') if saved else 'PNG files'}…"
        )
        factory.set_button_text(
            self.save_sheet, f"Save {formatting.count(saved, 'sprite')} as…" if saved else "Save as…"
        )
        for button in (self.save_files, self.save_sheet):  # with what is selected, no other button moves
            button.setMinimumWidth(max(button.minimumWidth(), button.sizeHint().width()))
        factory.set_enabled(
            self.back, "" if self._batches.can_go(-1) else "Nothing is held that was drawn before.", _BACK
        )
        factory.set_enabled(self.forward, "" if self._batches.can_go(1) else "Nothing was drawn after these.", _FORWARD)
        factory.set_enabled(self.edit, why_not or ("" if selected == 1 else "Select one sprite first."), _EDIT)
        two = "" if selected == 2 or (selected == 1 and self._is_editing) else "Select two sprites first."
        factory.set_enabled(self.between, why_not or two, _BETWEEN)
        factory.set_enabled(self.like, why_not or ("" if selected > 1 else "Select two sprites or more first."), _LIKE)
        for button in (self.open, self.blank, self.edit):
            button.setVisible("vary" in self._capabilities)
        for button in (self.between, self.like):
            button.setVisible("blend" in self._capabilities)

    @Slot(int)
    def _on_activated(self, number: int) -> None:
        if "vary" in self._capabilities:
            self.edit_requested.emit(number)

    @Slot()
    def _on_edit_clicked(self) -> None:
        self._on_activated(self.grid.selected()[0])

    @Slot(QAction)
    def _on_frame_count_chosen(self, action: QAction) -> None:
        self.between_requested.emit(action.data())


def _tab(words: str, tip: str) -> QToolButton:
    made = QToolButton()
    made.setText(words)
    made.setCheckable(True)
    factory.set_name_and_tip(made, words, tip)
    return made
