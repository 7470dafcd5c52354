"""Move selected sprites to another class: a menu of classes, and a dialog for a new class."""

from collections.abc import Callable, Sequence

import numpy as np
from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QCompleter, QLineEdit, QMenu, QWidget

from studio.app import keys
from studio.app.state.sprites.edits import SpriteEdits
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.widgets import factory
from studio.app.widgets.dialog import Dialog
from studio.app.widgets.menu import set_action_enabled
from studio.app.widgets.sprites.grid import SpriteGrid
from studio.core.errors import UsageError
from studio.core.formatting import count
from studio.data.edits import checked_class_name

_MOST_LISTED = 16  # classes; a longer menu would not fit the screen


class ClassMover(QObject):
    """Adds 'Move to class' to the context menu of a grid of open sprites. A key opens the dialog."""

    def __init__(self, grid: SpriteGrid, open_sprites: OpenSprites, selected: Callable[[], list[int]]) -> None:
        """Add the menu. selected: returns the indices of the selected sprites among the open sprites."""
        super().__init__(grid)
        self._grid, self._open_sprites, self._selected = grid, open_sprites, selected
        self._edits = SpriteEdits(open_sprites)
        self.menu = ClassMenu(grid)
        action = grid.menu.addMenu(self.menu)
        action.setProperty("tip", "Move the selected sprites to another class. Your files are not changed.")
        grid.menu.aboutToShow.connect(self._on_about_to_show)
        self.menu.chosen.connect(self.move)
        self.menu.other_requested.connect(self.open_dialog)
        keys.shortcut("move_class", grid, self.open_dialog)

    def why_not(self) -> str:
        """Return why no sprite can be moved, as a sentence; '' if the selected sprites can be moved."""
        return self._edits.problem() if self._grid.selected_count() else "Select some sprites first."

    @Slot()
    def open_dialog(self) -> None:
        """Ask for the new class of the selected sprites. Does nothing without movable sprites."""
        sprites = self._open_sprites.sprites
        if sprites is not None and not self.why_not():
            dialog = ClassDialog(self._grid, sprites.class_names, self._grid.selected_count())
            dialog.chosen.connect(self.move)
            dialog.open()

    @Slot()
    def _on_about_to_show(self) -> None:
        sprites = self._open_sprites.sprites
        if sprites is not None:
            own = np.unique(sprites.labels[self._selected()]).tolist()
            self.menu.set_classes(sprites.class_names, [sprites.class_names[label] for label in own])
        set_action_enabled(self.menu.menuAction(), self.why_not())

    @Slot(str)
    def move(self, class_name: str) -> None:
        """Move the selected sprites to a class."""
        self._edits.move_to_class(self._selected(), class_name)


class ClassMenu(QMenu):
    """A menu of classes. With many classes, lists the classes beside the sprites' own classes."""

    chosen = Signal(str)  # class name
    other_requested = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__("Move to class", parent)
        self.setToolTipsVisible(True)
        self.triggered.connect(self._on_triggered)

    def set_classes(self, names: Sequence[str], own: Sequence[str]) -> None:
        """List classes. own: classes of the selected sprites; a single own class is disabled."""
        self.clear()
        for name in _nearest(names, own):
            action = self.addAction(name.replace("&", "&&"))
            action.setData(name)
            is_here = list(own) == [name]
            action.setEnabled(not is_here)
            action.setToolTip("The selected sprites are in this class." if is_here else f"Move them to {name!r}.")
        if names:
            self.addSeparator()
        other = self.addAction("New class…" if len(names) <= _MOST_LISTED else "Other class…")
        other.setToolTip(keys.tip("Type the name of a new class, or choose among all classes. ({move_class})"))

    @Slot(QAction)
    def _on_triggered(self, action: QAction) -> None:
        if action.data() is None:
            self.other_requested.emit()
        else:
            self.chosen.emit(action.data())


def _nearest(names: Sequence[str], own: Sequence[str]) -> list[str]:
    """Return the classes to list, in the order of `names`: of many classes, the nearest to `own` in the folders."""
    if len(names) <= _MOST_LISTED:
        return list(names)
    parts = [name.split("/") for name in own]

    def distance(name: str) -> int:
        return -max((_shared(name.split("/"), each) for each in parts), default=0)

    nearest = set(sorted(names, key=distance)[:_MOST_LISTED])
    return [name for name in names if name in nearest]


def _shared(first: Sequence[str], second: Sequence[str]) -> int:
    """Count the equal folders at the beginning of two class names."""
    same = [one == other for one, other in zip(first, second, strict=False)]
    return same.index(False) if False in same else len(same)


class ClassDialog(Dialog):
    """A dialog for the name of a new or existing class."""

    chosen = Signal(str)  # class name

    def __init__(self, parent: QWidget, names: Sequence[str], sprites: int) -> None:
        """Create the dialog. names: existing classes. sprites: number of sprites to move."""
        super().__init__("Move to class", parent)
        self.field = QLineEdit(placeholderText="weapon/sword")
        factory.set_name_and_tip(self.field, "Class", "Type a new class, or the first letters of an existing class.")
        completer = QCompleter(list(names), self)
        completer.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        completer.setFilterMode(Qt.MatchFlag.MatchContains)
        self.field.setCompleter(completer)
        self._error = factory.FieldError(self.field, self.field.toolTip())
        tip = "Move the sprites to this class."
        self.move_button = factory.button("Move", tip, role="primary", slot=self._on_move_clicked)
        self.move_button.setDefault(True)
        cancel = factory.button("Cancel", "Leave the sprites in their class.", slot=self.reject)
        buttons = factory.row(1, cancel, self.move_button)
        label = f"Class for {count(sprites, 'sprite')}"
        parts = (factory.labelled(label, self.field), self._error, factory.caption("Files are not changed."), buttons)
        self.setLayout(factory.column(*parts, spacing=factory.GRID, margin=2 * factory.GRID))
        self.setMinimumWidth(320)
        self.field.textChanged.connect(self._on_text_changed)
        self._on_text_changed()

    @Slot()
    def _on_text_changed(self) -> None:
        self._error.show_reason("")
        factory.set_enabled(self.move_button, "" if self.field.text().strip() else "Type a class name first.")

    @Slot()
    def _on_move_clicked(self) -> None:
        try:
            name = checked_class_name(self.field.text())
        except UsageError as error:
            self._error.show_reason(f"{error.title} {error.hint}")
            self.adjustSize()
            return
        self.chosen.emit(name)
        self.accept()
