"""The results of generating: a grid of new or kept sprites."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QButtonGroup, QLabel, QStackedWidget, QToolButton, QWidget

from studio.app.background.job_events import SpritesColoured
from studio.app.background.model_jobs import MOST_RECENT, MOST_RECENT_MB, SpriteSelection
from studio.app.pages.generate.batches import DrawRequest, RejectionHistory, ResultHistory, ShownSprites, shown_kept
from studio.app.pages.generate.drag_and_drop import SpriteDragger
from studio.app.pages.generate.result_buttons import ResultButtons
from studio.app.state.models.kept_sprites import KeptSprites
from studio.app.state.sprites.drag_files import DragFiles
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.core import formatting
from studio.core.arrays import Rgba
from studio.data.pixels.editing import NamedSprite

if TYPE_CHECKING:
    from studio.data.colour.constraints import ConstraintCheck
    from studio.recipes.capabilities import Capability

_KEPT = "Show your kept sprites of this size, from all models."
_BACK = f"Previous batch; {MOST_RECENT} batches or {MOST_RECENT_MB} MB are kept. (Alt+Left)"
_FORWARD = "Next batch. (Alt+Right)"
_NO_PREVIOUS, _NO_NEXT = "No previous batch.", "No next batch."
_EMPTY = "Press Generate. You can also generate while a training runs."
_NOTHING = np.zeros((0, 1, 1, 4), np.uint8)


class Results(QWidget):
    """A grid of new or kept sprites, with buttons to keep, edit, copy and save them.

    edit_requested: edit the sprite at this index. between_requested: draw this many frames between two sprites.
    like_requested: draw sprites like the selected sprites. roll_requested: draw the batch with another seed. failed: a
    drag or a copy raised this OSError. undo_changed: `undo_title` has changed.
    """

    edit_requested = Signal(int)
    between_requested = Signal(int)
    like_requested = Signal()
    roll_requested = Signal()
    failed = Signal(object)
    undo_changed = Signal()

    def __init__(self, kept: KeptSprites, carried: DragFiles, neighbours: QWidget) -> None:
        """Create an empty grid. neighbours: the widget to show beside the grid."""
        super().__init__()
        self._neighbours = neighbours
        self._kept = kept
        self._batches = ResultHistory()
        self._rejections = RejectionHistory(kept)
        self._size = 0  # pixels a side of the chosen model's sprites
        self._capabilities: frozenset[Capability] = frozenset()
        self._is_editing = False
        self.grid = SpriteGrid()
        self.grid.set_zoom(3)
        self._carrier = SpriteDragger(self.grid.view, carried, self.to_save)
        self.new_tab, self.kept_tab = _tab("New", "Show the newest sprites."), _tab("Kept", _KEPT)
        self.back = factory.tool_button("chevron-left", "Back", _BACK)
        self.forward = factory.tool_button("chevron-right", "Forward", _FORWARD)
        self.buttons = ResultButtons()
        self._title, self._facts = factory.ElidedLabel("heading"), factory.ElidedLabel("muted")
        self.badges = Badges()
        self._empty = factory.caption(_EMPTY)
        self._stack = QStackedWidget()
        self._lay_out()
        self._connect()
        self._refresh_grid()

    def show_sprites(self, result: SpritesColoured, request: DrawRequest) -> None:
        """Show new sprites; recoloured sprites replace their earlier version."""
        before = self._batches.current
        batch = self._batches.add(result, request)
        is_on_show = self.new_tab.isChecked() and batch is self._batches.current
        if is_on_show and batch is before:
            self.grid.replace_pixels(result.sprites)
            self._describe()
        elif batch is not before and batch is self._batches.current:
            self.new_tab.setChecked(True)
            self._refresh_grid()

    def request(self) -> DrawRequest | None:
        """Return the request of the current batch; None before the first batch."""
        return self._batches.current.request if self._batches.current is not None else None

    def result(self) -> SpritesColoured | None:
        """Return the current batch of new sprites; None before the first batch."""
        return self._batches.current.result if self._batches.current is not None else None

    def undo_title(self) -> str:
        """Return the title of the next Undo step; '' without rejections."""
        return self._rejections.title()

    def undo(self) -> None:
        """Restore the sprites rejected last, and select them."""
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

    def set_model(self, capabilities: frozenset[Capability], size: int, *, is_editing: bool) -> None:
        """Enable what the chosen model can do. size: its sprites' side in pixels. is_editing: the editor is open."""
        is_other = size != self._size
        self._capabilities, self._size, self._is_editing = capabilities, size, is_editing
        if is_other:
            self._refresh_grid()
        self._refresh()

    def sprite(self, number: int) -> NamedSprite:
        """Return the shown sprite at this index."""
        shown = self._shown()
        assert shown is not None
        return NamedSprite(shown.sprites[number], shown.names[number], shown.classes[number], shown.sources[number])

    def corner_tiles(self) -> Rgba | None:
        """Return the shown set of corner tiles, uint8 [16, S, S, 4]; None for other sprites."""
        result = self.result() if self.new_tab.isChecked() else None
        return result.sprites if result is not None and result.titles else None

    def to_save(self) -> SpriteSelection | None:
        """Return the selected sprites, or all except rejected ones; None without sprites."""
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
        """Return a file name to propose for saving the shown sprites."""
        shown = self._shown()
        return shown.name if shown is not None else "sprites"

    def _shown(self) -> ShownSprites | None:
        """Return the sprites in the grid; None for an empty grid."""
        if self.new_tab.isChecked():
            return self._batches.current.shown if self._batches.current is not None else None
        kept = self._kept.of_size(self._size)
        return shown_kept(kept) if kept else None

    def _remaining(self) -> list[int]:
        """Return the indices of shown sprites, without rejected ones."""
        shown = self._shown()
        count = len(shown.sprites) if shown is not None else 0
        gone = self._rejected()
        return [number for number in range(count) if number not in gone]

    def _rejected(self) -> set[int]:
        """Return the indices of rejected sprites in the grid."""
        batch = self._batches.current if self.new_tab.isChecked() else None
        return batch.rejected if batch is not None else set()

    @Slot()
    def _refresh_grid(self) -> None:
        """Fill the grid with the new or the kept sprites."""
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
        """Show the batch's title, model, seed and badges, or describe the kept sprites."""
        batch = self._batches.current if self.new_tab.isChecked() else None
        result = batch.result if batch is not None else None
        self.badges.show_result(result)
        of = f", palette {result.palette}" if result is not None and result.palette else ""
        self._facts.show_text(f"{result.model}, seed {result.seed}{of}" if result is not None else "")
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
        text = f"No kept sprites of {pixels} yet. Select new sprites and press Keep (K)."
        self._empty.setText(f"{text}\n{more}")

    def _mark_kept(self) -> None:
        """Mark the new sprites that the user has kept."""
        result = self.result() if self.new_tab.isChecked() else None
        self.grid.set_marked(self._kept.indices_of(result.sprites) if result is not None else ())

    def _lay_out(self) -> None:
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack.addWidget(factory.panel(factory.column(1, self._empty, 1)))
        self._stack.addWidget(self.grid)
        tabs = QButtonGroup(self)
        for tab in (self.new_tab, self.kept_tab):
            tabs.addButton(tab)
        self.new_tab.setChecked(True)
        head = factory.row(self._title, self._facts, self.back, self.forward, self.new_tab, self.kept_tab)
        head.setStretch(0, 2)
        head.setStretch(1, 1)
        middle = factory.row(self._stack, self._neighbours)
        middle.setStretch(0, 1)
        body = factory.column(head, self.badges, self.buttons, middle)
        body.setStretch(3, 1)
        self.setLayout(body)

    def _connect(self) -> None:
        self.grid.selection_changed.connect(self._refresh)
        self.grid.activated.connect(self._on_activated)
        self._carrier.failed.connect(self.failed)
        self.buttons.copy.clicked.connect(self._carrier.copy)
        self.buttons.edit.clicked.connect(self._on_edit_clicked)
        self.buttons.like.clicked.connect(self.like_requested)
        self.buttons.keep.clicked.connect(self._on_keep)
        self.buttons.reject.clicked.connect(self._on_reject)
        self.back.clicked.connect(self._on_back)
        self.forward.clicked.connect(self._on_forward)
        self.new_tab.clicked.connect(self._refresh_grid)
        self.kept_tab.clicked.connect(self._refresh_grid)
        self._kept.changed.connect(self._on_kept_changed)
        self.buttons.frame_counts.triggered.connect(self._on_frame_count_chosen)
        keys = (
            ("K", self._on_keep),
            ("X", self._on_reject),
            ("R", self.roll_requested),
            ("Ctrl+C", self._carrier.copy),
            ("Alt+Left", self._on_back),
            ("Alt+Right", self._on_forward),
        )
        for key, slot in keys:
            factory.shortcut(key, self, slot)

    @Slot()
    def _on_keep(self) -> None:
        chosen = self.grid.selected()
        if self.new_tab.isChecked() and chosen:
            self._kept.add(map(self.sprite, chosen))
            self._select_next(chosen[-1])

    @Slot()
    def _on_reject(self) -> None:
        chosen, batch = self.grid.selected(), self._batches.current
        if not chosen:
            return
        if self.new_tab.isChecked() and batch is not None:
            self._rejections.reject(batch, chosen)
            self.grid.set_visible(self._remaining(), stays=True)
            self._describe()
            self._select_next(chosen[-1])
        else:
            kept = self._kept.of_size(self._size)
            self._rejections.reject_kept([kept[number] for number in chosen])
            self._select_next(chosen[-1] - len(chosen))
        self.undo_changed.emit()

    def _select_next(self, number: int) -> None:
        """Select the sprite that follows sprite `number` in the grid, or the last sprite."""
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
        """Show an earlier or later batch of new sprites."""
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
        is_new, has_sprites = self.new_tab.isChecked(), self._stack.currentIndex() == 1
        empty = "No sprites yet. Press Generate." if is_new else "No kept sprites yet."
        selected = self.grid.selected_count() if has_sprites else 0
        to_save = selected or (len(self._remaining()) if has_sprites else 0)
        self.buttons.refresh(
            "" if has_sprites else empty, selected, to_save, is_new=is_new, is_editing=self._is_editing
        )
        self.buttons.set_abilities(self._capabilities)
        count = len(self._kept.of_size(self._size))
        self.kept_tab.setText(f"Kept ({count:,})" if count else "Kept")
        no_previous, no_next = (
            "" if self._batches.can_go(step) else why for step, why in ((-1, _NO_PREVIOUS), (1, _NO_NEXT))
        )
        factory.set_enabled(self.back, no_previous, _BACK)
        factory.set_enabled(self.forward, no_next, _FORWARD)

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


class Badges(QWidget):
    """Badges for the checks on new sprites, and a note."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[QLabel] = []
        self.note = factory.text("", "warning")
        self._flow = FlowLayout(factory.GRID // 2, factory.GRID // 2)
        self.setLayout(factory.column(self.note, self._flow, spacing=4))
        self.show_result(None)

    def show_result(self, result: SpritesColoured | None) -> None:
        """Show which checks the new sprites pass, and a note; None clears the badges."""
        for label in self.labels:
            self._flow.removeWidget(label)
            label.deleteLater()
        self.labels = [_badge(badge) for badge in result.badges] if result is not None else []
        for label in self.labels:
            self._flow.addWidget(label)
        self.note.setText(result.note if result is not None else "")
        self.note.setVisible(bool(self.note.text()))
        self.setVisible(bool(self.labels or self.note.text()))


def _badge(badge: ConstraintCheck) -> QLabel:
    """Return a check's badge: its title, with the number of passing sprites if some fail."""
    fails = badge.count - badge.holds
    text, tip = badge.title, f"{badge.title}: passed by all sprites."
    if fails and fails == badge.but_kept:
        text, tip = f"{badge.title}, except kept pixels", "Pixels outside the selection were not changed."
    elif fails:
        text, tip = f"{badge.title}: {badge.holds} of {badge.count}", "Number of sprites that pass this check."
    result = factory.badge(text)
    factory.set_name_and_tip(result, text, tip)
    return result


def _tab(text: str, tip: str) -> QToolButton:
    result = QToolButton()
    result.setText(text)
    result.setCheckable(True)
    factory.set_name_and_tip(result, text, tip)
    return result
