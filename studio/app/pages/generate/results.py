"""The results of generating: a grid of new or kept sprites."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QAction, QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QButtonGroup, QLabel, QMenu, QToolButton, QWidget

from studio.app import keys
from studio.app.background.job_events import SpritesColoured
from studio.app.background.model_jobs import MOST_RECENT, MOST_RECENT_MB, SpriteSelection
from studio.app.pages.drag_and_drop import SpriteDragger
from studio.app.pages.generate.batches import DrawRequest, GridContent, ResultBatch
from studio.app.pages.generate.neighbours import NeighboursPanel
from studio.app.pages.generate.triage import Triage
from studio.app.state.models.kept_sprites import KeptSprites
from studio.app.state.models.saving import DragFiles
from studio.app.state.undo import UndoHistory
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.menu import set_keys
from studio.app.widgets.overflow_bar import OverflowBar
from studio.app.widgets.sprites.grid import LARGE_VIEW, SpriteGrid
from studio.app.widgets.sprites.zoom import ZoomSlider
from studio.core import formatting
from studio.data.colour.constraints import ConstraintCheck

_BACK = f"Previous batch; {MOST_RECENT} batches or {MOST_RECENT_MB} MB are kept. ({{previous_batch}})"
_EMPTY = "New sprites appear here. You can also generate while a training runs."
_NOTHING = np.zeros((0, 1, 1, 4), np.uint8)
_REJECT = "Reject: hide the selected sprites; Undo shows them again. ({reject})"
_SKETCH = "Sketch: start an empty sprite: paint rough blobs, and the model draws sprites from them."
_COPY = "Copy the selected sprites to paste or drag them into another program. ({copy})"
_KINDS = "sheet, GIF, APNG, Aseprite or Godot"
_FRAME_COUNTS = (2, 3, 4, 6, 8)
_NARROW = 440  # logical pixels; narrower results have no room for a panel at their side
_LOWEST_WITH_PANEL = 620  # logical pixels; lower results have no room for three rows and a panel below them
_ROWS_BESIDE_EDITOR = 3  # rows of sprites that stay visible
_BADGE_GAP = factory.GRID // 2
_HIGHEST_ROWS, _FRAME = 400, 16  # logical pixels: limit of their height, and height of the frame around the grid


class Results(QWidget):
    """A grid of new or kept sprites, with buttons."""

    def __init__(
        self, kept: KeptSprites, history: UndoHistory, carried: DragFiles, neighbours: NeighboursPanel
    ) -> None:
        """Create an empty grid. history: receives kept and rejected sprites.

        neighbours: the panel beside the grid, or below it in a narrow window.
        """
        super().__init__()
        self._neighbours = neighbours
        self._middle = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self.content = GridContent(kept)
        self._is_editing = False
        self.grid = SpriteGrid(thumbnail=96)
        self.zoom = ZoomSlider(self.grid.zoom)
        self.triage = Triage(self.content, self.grid, history)
        self.dragger = SpriteDragger(self.grid.view, carried, self.to_save)
        self.new_tab = factory.toggle("New", "Show the newest sprites.", self._on_tab_clicked)
        kept_tab = "Show your kept sprites of this size, from all models."
        self.kept_tab = factory.toggle("Kept", kept_tab, self._on_tab_clicked)
        self.back = factory.tool_button("chevron-left", "Back", _BACK, self._on_back)
        self.forward = factory.tool_button("chevron-right", "Forward", "Next batch. ({next_batch})", self._on_forward)
        self.buttons = ResultButtons(self.back, self.forward)
        self._title, self._facts = factory.ElidedLabel("heading"), factory.ElidedLabel("muted")
        self._facts.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.badges = Badges()
        self._empty = factory.caption(_EMPTY)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack = factory.stack(factory.panel(factory.column(1, self._empty, 1)), self.grid)
        self._lay_out()
        self.grid.selection_changed.connect(self._refresh)
        self.buttons.copy.clicked.connect(self.dragger.copy)
        self.buttons.keep.clicked.connect(self.triage.keep)
        self.buttons.reject.clicked.connect(self.triage.reject)
        self.triage.hidden_changed.connect(self._describe)
        self.triage.shown_changed.connect(self._refresh_grid)
        kept.changed.connect(self._on_kept_changed)
        self._edit_action = self._fill_menu()
        keys.shortcut("previous_batch", self, self._on_back)
        keys.shortcut("next_batch", self, self._on_forward)
        self._refresh_grid()

    def _fill_menu(self) -> QAction:
        """Fill the grid's context menu with the buttons; return the action that edits a sprite."""
        menu, buttons = self.grid.menu, self.buttons
        menu.add("View large", LARGE_VIEW, self.grid.open_large, "zoom-in")
        for button, name in ((buttons.keep, "keep"), (buttons.reject, "reject"), (buttons.copy, "copy")):
            set_keys(menu.add_button(button), self, name)
        edit = menu.add_button(buttons.edit)
        set_keys(edit, self, "edit")
        menu.in_large_view += [action for action in menu.actions() if action.text() in ("Keep", "Reject", "Edit")]
        menu.leave_after(edit)
        menu.addSeparator()
        for button in (buttons.save_files, buttons.save_sheet):
            menu.add_button(button)
        return edit

    def show_sprites(self, result: SpritesColoured, request: DrawRequest) -> None:
        """Show new sprites; recoloured sprites replace their earlier version."""
        history = self.content.history
        before = history.current
        batch = history.add(result, request)
        if batch is not history.current:  # an earlier batch was recoloured
            return
        if batch is not before:
            self.content.shows_new = True
            self._refresh_grid()
        elif self.content.shows_new:
            self.grid.replace_pixels(result.sprites)
            self._describe()

    def show_batch(self, batch: ResultBatch) -> None:
        """Show this batch of new sprites, unless the history has dropped it."""
        if self.content.history.show(batch):
            self.content.shows_new = True
            self._refresh_grid()

    def result(self) -> SpritesColoured | None:
        """Return the current batch of new sprites; None before the first batch."""
        batch = self.content.history.current
        return batch.result if batch is not None else None

    def set_model(self, capabilities: frozenset[str], size: int, *, is_editing: bool) -> None:
        """Enable the actions that the chosen model supports. size: sprite width. is_editing: the editor is open."""
        is_other, self.content.size, self._is_editing = size != self.content.size, size, is_editing
        self.buttons.set_abilities(capabilities)
        self._neighbours.set_editing(is_editing)
        self._edit_action.setVisible("vary" in capabilities)
        if is_other:
            self._refresh_grid()
        self._refresh()
        self.place_neighbours()

    def to_save(self) -> SpriteSelection | None:
        """Return the selected sprites, or all except rejected ones; None without sprites. Films get the shown speed."""
        selection = self.content.selection(self.grid.selected())
        if selection is not None and selection.is_animation:
            return replace(selection, duration_ms=self._neighbours.player.playback.duration_ms())
        return selection

    @Slot()
    def _refresh_grid(self) -> None:
        """Fill the grid with the new or the kept sprites."""
        shown, batch = self.content.sprites(), self.content.batch()
        (self.new_tab if self.content.shows_new else self.kept_tab).setChecked(True)
        self._stack.setCurrentIndex(0 if shown is None else 1)
        if shown is not None:
            pairs = zip(shown.names, shown.classes, strict=True)
            names = [f"{name} – {label}" if label else name for name, label in pairs]
            captions = shown.classes if any(shown.classes) else ()
            self.grid.set_sprites(shown.sprites, names, captions)
            self.grid.set_visible(self.content.remaining() if batch is not None and batch.rejected else None)
        else:
            self.grid.set_sprites(_NOTHING)
        self._describe()
        self._refresh()

    @Slot()
    def _describe(self) -> None:
        """Show the batch's title, model, seed and badges, or describe the kept sprites."""
        batch, kept, size = self.content.batch(), self.content.kept, self.content.size
        result = batch.result if batch is not None else None
        self.badges.show_result(result)
        palette = f", palette {result.palette}" if result is not None and result.palette else ""
        facts = f"{result.model}, seed {result.seed}{palette}" if result is not None else ""
        self._facts.show_text(facts)
        self._mark_kept()
        if self.content.shows_new:
            title, empty = batch.title() if batch is not None else "New sprites", _EMPTY
        else:
            others = formatting.count(kept.count_of_other_sizes(size), "kept sprite")
            title = f"{formatting.count(len(kept.of_size(size)), 'kept sprite')}, {size} x {size}"
            empty = f"No kept sprites of {size} x {size} pixels yet. Select new sprites and press Keep."
            if kept.count_of_other_sizes(size):
                empty += f"\n{others} of other sizes: choose a model of that size."
        self._title.show_text(title, facts)
        self._empty.setText(empty)

    def _mark_kept(self) -> None:
        """Mark the new sprites that the user has kept."""
        batch = self.content.batch()
        self.grid.set_marked(self.content.kept.indices_of(batch.result.sprites) if batch is not None else ())

    def _lay_out(self) -> None:
        tabs = QButtonGroup(self)
        tabs.addButton(self.new_tab)
        tabs.addButton(self.kept_tab)
        head = factory.row(self._title, self._facts, self.new_tab, self.kept_tab, grows=1)
        head.setStretch(0, 1)
        below = factory.row(self.badges, self.zoom, grows=0)
        self._middle.addWidget(self._stack, 1)
        self._middle.addWidget(self._neighbours)
        self.setLayout(factory.column(head, self.buttons, self._middle, below, grows=2))
        self.kept_tab.setMinimumWidth(self.kept_tab.fontMetrics().horizontalAdvance("Kept (99)") + 2 * factory.GRID)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.place_neighbours()

    @Slot()
    def place_neighbours(self) -> None:
        """Place the panel beside the grid, or below a narrow grid, unless the editor needs the room."""
        is_narrow = self.width() < _NARROW
        sides = QBoxLayout.Direction.TopToBottom, QBoxLayout.Direction.LeftToRight
        if self._middle.direction() != sides[not is_narrow]:
            self._middle.setDirection(sides[not is_narrow])
            self._neighbours.set_below(is_narrow)
        self._facts.setVisible(not is_narrow)
        self.badges.reserve_rows(2 if is_narrow else 1)
        has_room = not self._is_editing or self.height() >= _LOWEST_WITH_PANEL
        self._neighbours.setVisible(not is_narrow or has_room or self._neighbours.is_playing())
        rows = _ROWS_BESIDE_EDITOR if self._is_editing else 1
        self._stack.setMinimumHeight(min(rows * self.grid.view.cell.height() + _FRAME, _HIGHEST_ROWS))

    @Slot()
    def _on_tab_clicked(self) -> None:
        self.content.shows_new = self.new_tab.isChecked()
        self._refresh_grid()

    @Slot()
    def _on_back(self) -> None:
        self._go(-1)

    @Slot()
    def _on_forward(self) -> None:
        self._go(1)

    def _go(self, steps: int) -> None:
        """Show an earlier or later batch of new sprites."""
        if self.content.history.can_go(steps):
            self.content.history.go(steps)
            self.content.shows_new = True
            self._refresh_grid()

    @Slot()
    def _on_kept_changed(self) -> None:
        if self.content.shows_new:
            self._mark_kept()
        else:
            self._refresh_grid()
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        content, has_sprites = self.content, self._stack.currentIndex() == 1
        empty = "No sprites yet. Press Generate." if content.shows_new else "No kept sprites yet."
        selected = self.grid.selected_count() if has_sprites else 0
        to_save = selected or (len(content.remaining()) if has_sprites else 0)
        no_sprites, is_new = "" if has_sprites else empty, content.shows_new
        batch, is_editing = content.batch(), self._is_editing
        is_animation = batch is not None and batch.shown.is_animation
        self.buttons.refresh(
            no_sprites, selected, to_save, is_new=is_new, is_animation=is_animation, is_editing=is_editing
        )
        count = len(content.kept.of_size(content.size))
        self.kept_tab.setText(f"Kept ({count:,})" if count else "Kept")
        factory.set_enabled(self.back, "" if content.history.can_go(-1) else "No previous batch.")
        factory.set_enabled(self.forward, "" if content.history.can_go(1) else "No next batch.")


class ResultButtons(OverflowBar):
    """The result buttons in a row. frame_counts: the Tween menu; an action's data is a number of frames."""

    def __init__(self, back: QToolButton, forward: QToolButton) -> None:
        """Create the row. back, forward: buttons for the previous and the next batch."""
        make = factory.tool_button
        self.keep = make("check", "Keep", "Keep the selected sprites, even after closing the window. ({keep})")
        self.reject = make("close", "Reject", _REJECT)
        self.edit = make("pencil", "Edit", "Edit the selected sprite. ({edit})")
        self.between = make("tween", "Tween", "Tween: generate the frames between two selected sprites.")
        self.like = make("similar", "Similar", "Similar: generate sprites that mix the selected sprites.")
        self.open = make("open", "Open…", "Open an image file in the editor. You can also drop or paste it. ({paste})")
        self.new_sprite = make("new", "Sketch", _SKETCH)
        self.copy = make("copy", "Copy", _COPY)
        self.save_files = make("save-files", "Save PNG files…", "Save PNG files.")
        self.save_sheet = make("save", "Save as…", "Save as one file.")
        self.frame_counts = QMenu(self.between)
        for count in _FRAME_COUNTS:
            self.frame_counts.addAction(f"{count} frames between").setData(count)
        for button in (self.keep, self.reject, self.edit, self.between, self.like, self.open, self.new_sprite):
            button.setText(button.accessibleName())
        for button, text in ((self.copy, "Copy"), (self.save_files, "Save files…"), (self.save_sheet, "Save as…")):
            button.setText(text)
        self.between.setMenu(self.frame_counts)
        self.between.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        draws = (self.edit, self.between, self.like)
        saves = (self.copy, self.save_files, self.save_sheet)
        super().__init__((self.keep, self.reject), draws, saves, (back, forward), (self.open, self.new_sprite))

    def set_abilities(self, can: frozenset[str]) -> None:
        """Show the buttons that the chosen model supports."""
        for button in (self.open, self.new_sprite, self.edit):
            self.set_offered(button, "vary" in can)
        for button in (self.between, self.like):
            self.set_offered(button, "blend" in can)

    def refresh(
        self, no_sprites: str, selected: int, to_save: int, *, is_new: bool, is_animation: bool, is_editing: bool
    ) -> None:
        """Enable each button, or disable it and show the reason as its tooltip.

        no_sprites: why the grid is empty; '' for a filled grid. selected, to_save: numbers of sprites. is_new: the grid
        shows new sprites, not kept ones. is_animation: the sprites are frames. is_editing: the editor holds a sprite,
        which can start a tween.
        """
        none = no_sprites or ("" if selected else "Select some sprites first.")
        factory.set_enabled(self.keep, none or ("" if is_new else "Already kept."))
        factory.set_enabled(self.reject, none)
        factory.set_enabled(self.copy, none)
        what = "frame" if is_animation else "sprite"
        which = f"selected {what}" if selected else what
        sprites, files = formatting.count(to_save, which), formatting.count(to_save, "PNG file")
        factory.set_enabled(self.save_files, no_sprites, f"Save {files}, one for each {which}.")
        factory.set_enabled(self.save_sheet, no_sprites, f"Save {sprites} as one file: {_KINDS}. ({{save}})")
        factory.set_enabled(self.edit, no_sprites or ("" if selected == 1 else "Select one sprite first."))
        has_ends = selected == 2 or (selected == 1 and is_editing)
        factory.set_enabled(self.between, no_sprites or ("" if has_ends else "Select two sprites first."))
        factory.set_enabled(self.like, no_sprites or ("" if selected > 1 else "Select two or more sprites."))


class Badges(QWidget):
    """Badges for the checks on new sprites, and a note."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[QLabel] = []
        self.note = factory.text("", "warning")
        self._flow = FlowLayout(_BADGE_GAP, _BADGE_GAP)
        self.setLayout(factory.column(self.note, self._flow, spacing=4))
        self._row_height = factory.badge("Palette OK").sizeHint().height()
        self.reserve_rows(1)
        self.show_result(None)

    def reserve_rows(self, count: int) -> None:
        """Keep room for this number of rows, so that new badges don't move the grid."""
        self.setMinimumHeight(count * self._row_height + (count - 1) * _BADGE_GAP)

    def show_result(self, result: SpritesColoured | None) -> None:
        """Show which checks the new sprites pass, and a note; None clears the badges."""
        factory.clear(self._flow)
        self.labels = [_badge(badge) for badge in result.badges] if result is not None else []
        for label in self.labels:
            self._flow.addWidget(label)
        self.note.setText(result.note if result is not None else "")
        self.note.setVisible(bool(self.note.text()))


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
