"""Summary of the open sprites: count, classes, import settings, licence, colours."""

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QColor, QDragEnterEvent, QDragLeaveEvent, QDragMoveEvent, QDropEvent, QPainter, QPen
from PySide6.QtWidgets import QHeaderView, QStyleOptionViewItem, QTreeWidget, QTreeWidgetItem, QWidget

from studio.app import theme
from studio.app.pages.sprites.attribute_list import AttributeList
from studio.app.pages.sprites.palette_view import PaletteView
from studio.app.state.session import Session
from studio.app.state.sprites.attributes import AttributeEdits
from studio.app.state.sprites.rights import load_rights, store_rights
from studio.app.widgets import factory
from studio.app.widgets.config_form import ConfigForm
from studio.app.widgets.layout import Collapsible
from studio.app.widgets.sprites.cell_view import Index
from studio.core import formatting
from studio.core.errors import BadInputError, UsageError
from studio.data.attributes.reading import parse_names as parse_attribute_names
from studio.data.importing.importing import ImportOptions, SpritesImported, with_palette
from studio.data.rights import Rights
from studio.data.sets.renaming import AXIS_LABELS, parse_names
from studio.data.sprites import Sprites

_MOST_NUMBERS = 3  # names to show


class ImportSummary(QWidget):
    """The left side of the Sprites page, which connects the buttons `train`, `reopen` and `preview_slicing`."""

    filtered = Signal()  # `indices` changed
    options_edited = Signal()  # the user edited the import settings

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._open_sprites, self._settings = session.open_sprites, session.settings
        self.classes = ClassList()
        self.classes.setMinimumHeight(200)
        self.attributes = AttributeList(AttributeEdits(session.open_sprites))
        self.form = ConfigForm(ImportOptions())
        self.rights = ConfigForm(Rights())
        self.preview_slicing = factory.button("Preview slicing…", "Preview how the sheets are sliced.")
        self.train = factory.button("Train on these", "Go to the Train page.", "train", "primary")
        self.reopen = factory.button("Open another folder…", "Open another folder of sprites.", "folder")
        self._title = factory.elided_title()
        self._facts = factory.caption("")
        self.palette_view = PaletteView(session)
        options = Collapsible("Import settings", factory.panel(factory.column(self.form, self.preview_slicing)))
        rights = Collapsible("Licence and credits", self.rights)
        parts = (self._title, self._facts, self.train, self.reopen, factory.heading("Classes"), self.classes)
        margin = (3 * factory.GRID, factory.GRID, 2 * factory.GRID, factory.GRID)
        self.setLayout(
            factory.column(*parts, self.attributes, options, rights, self.palette_view, 1, margin=margin, grows=5)
        )
        self.form.changed.connect(self.options_edited)
        self.rights.changed.connect(self._on_rights_changed)
        self.classes.chosen.connect(self.filtered)
        self.attributes.chosen.connect(self.filtered)
        self.palette_view.chosen.connect(self.filtered)

    @property
    def indices(self) -> NDArray[np.int64] | None:
        """Sprites with the chosen class, attributes and colour: int64 [n], ascending; None without a choice."""
        parts = (self.classes.indices, self.attributes.indices, self.palette_view.indices)
        chosen = [part for part in parts if part is not None]
        both = partial(np.intersect1d, assume_unique=True)
        return reduce(both, chosen) if chosen else None

    def show_all(self) -> None:
        """Choose all classes, attributes and colours."""
        self.classes.choose("")
        self.attributes.show_all()
        self.palette_view.clear()

    def show_result(self, result: SpritesImported, *, keeps_class: bool) -> None:
        """Show an import's summary. The palette appears after counting the colours.

        keeps_class: keep the chosen class if a class with this name still exists.
        """
        sprites = result.sprites
        self._title.show_text(sprites.title)
        classes = formatting.count(len(sprites.class_names), "class", "classes")
        facts = f"{formatting.count(len(sprites), 'sprite')} of {sprites.size} × {sprites.size} pixels in {classes}"
        if len(sprites.sets):
            facts += f", {formatting.count(len(sprites.sets), 'character')}"
        if sprites.target_names:
            facts += f", with {_listed(sprites.target_names)}"
        self._facts.setText(facts)
        self.palette_view.set_sprites(sprites)
        self.classes.show_classes(sprites, self.classes.chosen_class() if keeps_class else "")
        self.attributes.show_attributes(sprites.attributes, len(sprites), keeps_choice=keeps_class)
        self.form.set_config(self._open_sprites.options)
        self.rights.set_config(load_rights(self._settings, self._open_sprites.paths, sprites.origin))

    @Slot()
    def _on_rights_changed(self) -> None:
        rights = self.rights.config()
        assert isinstance(rights, Rights)
        store_rights(self._settings, self._open_sprites.paths, rights)

    def edited_options(self) -> ImportOptions | None:
        """Return the import options in the form; None for an invalid value."""
        try:
            options = self.form.config()
        except UsageError:
            return None
        assert isinstance(options, ImportOptions)
        return options

    def apply_options(self) -> None:
        """Import again with the options in the form; show an unusable palette or name at its field."""
        options = self.edited_options()
        if options is None:
            return
        problem = _problem(options)
        if problem is None:
            self._open_sprites.change_options(options)
        else:
            self.form.show_error(*problem)


def _problem(options: ImportOptions) -> tuple[str, str] | None:
    """Return the first unusable option and the reason; None without unusable options."""
    name = "palette"
    try:
        with_palette(options)
        for name in AXIS_LABELS:
            parse_names(options, name)
        name = "attribute_names"
        parse_attribute_names(options.attribute_names)
    except BadInputError as error:
        return name, f"{error.title} {error.hint}".strip()
    return None


def _listed(names: Sequence[str]) -> str:
    """Return a text that lists the names of number columns: 'numbers (price, weight and 3 more)'."""
    more = f" and {len(names) - _MOST_NUMBERS} more" if len(names) > _MOST_NUMBERS else ""
    return f"{'numbers' if len(names) > 1 else 'a number'} ({', '.join(names[:_MOST_NUMBERS])}{more})"


class ClassList(QTreeWidget):
    """A list of classes with counts. sprites_dropped: the class on which the user dropped dragged sprites."""

    chosen = Signal()
    sprites_dropped = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.indices: NDArray[np.int64] | None = None  # int64 [n], sprites in the chosen class; None without a choice
        self._labels: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.setColumnCount(2)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setUniformRowHeights(True)
        self.header().setStretchLastSection(False)
        self.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self._drag_source: QWidget | None = None
        self._target: QTreeWidgetItem | None = None  # the class under dragged sprites
        tip = "Select a class to show only its sprites. Drop selected sprites on a class to move them."
        factory.set_name_and_tip(self, "Classes", tip)
        self.currentItemChanged.connect(self._on_item_changed)

    def chosen_class(self) -> str:
        """Return the chosen class; '' for 'All classes'."""
        item = self.currentItem()
        return item.text(0) if item is not None and item.data(0, Qt.ItemDataRole.UserRole) >= 0 else ""

    def choose(self, name: str) -> None:
        """Choose a class by its name, or 'All classes' for '' and for an unknown name."""
        found = self.findItems(name, Qt.MatchFlag.MatchExactly) if name else []
        found = [item for item in found if item.data(0, Qt.ItemDataRole.UserRole) >= 0]
        self.setCurrentItem(found[0] if found else self.topLevelItem(0))  # type: ignore[arg-type]  # never empty

    def show_classes(self, sprites: Sprites, chosen: str = "") -> None:
        """List these sprites' classes, and choose a class by its name, or 'All classes' for ''."""
        self._labels, self._target = sprites.labels, None
        self.clear()
        self._add("All classes", len(sprites), -1)
        for label, (name, count) in enumerate(zip(sprites.class_names, sprites.class_counts(), strict=True)):
            self._add(name, int(count), label)
        self.choose(chosen)

    def accept_drops_from(self, view: QWidget) -> None:
        """Accept sprites dragged from this view, and no other drops."""
        self._drag_source = view
        self.setAcceptDrops(True)
        self.setDropIndicatorShown(False)  # the list marks the class itself

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if self._drag_source is not None and event.source() is self._drag_source:
            event.acceptProposedAction()
        else:
            event.ignore()  # files go to the window

    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        """Mark the class under the mouse; near the edges, scroll."""
        super().dragMoveEvent(event)
        item = self.itemAt(event.position().toPoint())
        is_class = item is not None and item.data(0, Qt.ItemDataRole.UserRole) >= 0
        self._mark(item if is_class else None)
        (event.acceptProposedAction if is_class else event.ignore)()

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        super().dragLeaveEvent(event)
        self._mark(None)

    def dropEvent(self, event: QDropEvent) -> None:
        name = self._target.text(0) if self._target is not None else ""
        self._mark(None)
        self.stopAutoScroll()
        self.setState(self.State.NoState)
        if name:
            event.acceptProposedAction()
            self.sprites_dropped.emit(name)

    def _mark(self, target: QTreeWidgetItem | None) -> None:
        self._target = target
        self.viewport().update()

    def drawRow(self, painter: QPainter, options: QStyleOptionViewItem, index: Index) -> None:
        """Draw a class, with a frame while the user drags sprites over the class."""
        super().drawRow(painter, options, index)
        if self._target is not None and self.itemFromIndex(index) is self._target:
            painter.setPen(QPen(QColor(theme.colours().accent), 2))
            painter.drawRect(self.visualItemRect(self._target).adjusted(1, 1, -1, -1))

    def _add(self, name: str, count: int, label: int) -> None:
        item = QTreeWidgetItem([name, formatting.number(count)])
        item.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        item.setData(0, Qt.ItemDataRole.UserRole, label)
        item.setToolTip(0, name)
        self.addTopLevelItem(item)

    @Slot(QTreeWidgetItem, QTreeWidgetItem)
    def _on_item_changed(self, item: QTreeWidgetItem | None) -> None:
        if item is not None:
            label = item.data(0, Qt.ItemDataRole.UserRole)
            self.indices = None if label < 0 else np.flatnonzero(self._labels == label)
            self.chosen.emit()
