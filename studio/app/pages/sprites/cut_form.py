"""The numbers of a cut: those of a grid or of packed sprites, and what becomes a class."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QLabel, QRadioButton, QSpinBox, QWidget

from studio.app.widgets import factory
from studio.app.widgets.config_form import whole_box
from studio.core.config import settings_of
from studio.core.wording import percent
from studio.data.options import Grid, ImportOptions
from studio.data.sheets.slicing import given_grid

_GRID = ("tile", "tile_height", "margin", "margin_top", "spacing")
_USUAL_TILE = 16
_LABEL_WIDTH = 96
_CLASSES = {"sheet": "Each sheet is a class", "row": "Each row is a class"}


class CutForm(QWidget):
    """Changes those settings of an import that are about sheets. `changed`: by the user."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._base = ImportOptions()
        self._showing = False
        self.grid = QRadioButton("Grid")
        self.packed = QRadioButton("Packed")
        self.automatic = QCheckBox("Automatic")
        self.boxes: dict[str, QSpinBox] = {}
        self.classes = QComboBox()
        self.proposal = factory.caption("")
        self._of_grid = factory.panel(factory.column(self.automatic, self.proposal, self._rows(_GRID)))
        self._of_packed = factory.panel(self._rows(("gap",)))
        factory.describe(self.grid, "Grid", "Cut the sheet into tiles of one size, in rows and columns.")
        factory.describe(self.packed, "Packed", "Cut the sheet where emptiness parts its sprites.")
        factory.describe(self.automatic, "Automatic", "Take the grid that is seen in each sheet.")
        factory.describe(self.classes, "Classes", "What becomes a class of its own: each sheet, or each of its rows.")
        for value, words in _CLASSES.items():
            self.classes.addItem(words, value)
        for name in ("tile", "tile_height"):
            self.boxes[name].setMinimum(1)
        self.boxes["margin_top"].setMinimum(0)
        choice = factory.row(self.grid, self.packed, 1, spacing=2 * factory.GRID)
        self.setLayout(factory.column(choice, self._of_grid, self._of_packed, self.classes))
        self.grid.toggled.connect(self._edited)
        self.automatic.toggled.connect(self._edited)
        self.classes.currentIndexChanged.connect(self._edited)
        for name in _GRID:
            self.boxes[name].valueChanged.connect(self._number_edited)
        self.boxes["gap"].valueChanged.connect(self._edited)

    def set_options(self, options: ImportOptions) -> None:
        """Begin with these."""
        self._base = options
        self._showing = True
        self.packed.setChecked(options.sheets == "packed")
        self.grid.setChecked(options.sheets != "packed")
        self.automatic.setChecked(not options.tile)
        self.boxes["gap"].setValue(options.gap)
        self.classes.setCurrentIndex(self.classes.findData(options.sheet_classes))
        self._show_numbers(given_grid(options.replace(tile=options.tile or _USUAL_TILE)))
        self._showing = False
        self._fold()

    def options(self) -> ImportOptions:
        """The settings as they are shown."""
        chosen = self._base.replace(
            sheets="packed" if self.packed.isChecked() else "grid",
            gap=self.boxes["gap"].value(),
            sheet_classes=str(self.classes.currentData()),
        )
        if self.automatic.isChecked():
            return chosen.replace(tile=0, tile_height=0, margin=0, margin_top=-1, spacing=0)
        numbers = {name: self.boxes[name].value() for name in _GRID}
        if numbers["tile_height"] == numbers["tile"]:
            numbers["tile_height"] = 0
        if numbers["margin_top"] == numbers["margin"]:
            numbers["margin_top"] = -1
        return chosen.replace(**numbers)

    def show_proposal(self, grid: Grid | None) -> None:
        """Say what grid is seen in the sheet; where it is the one to be taken, show its numbers."""
        if grid is None:
            self.proposal.setText("No grid is seen in this sheet: give its numbers, or try Packed.")
            return
        self.proposal.setText(f"{_in_words(grid)}. {percent(round(grid.confidence, 2))} sure.")
        if self.automatic.isChecked():
            self._showing = True
            self._show_numbers(grid)
            self._showing = False

    @Slot(object)
    def take_grid(self, grid: Grid) -> None:
        """Take the numbers of a grid that the user has moved."""
        self._showing = True
        self.automatic.setChecked(False)
        self._show_numbers(grid)
        self._showing = False
        self._edited()

    @Slot()
    def _edited(self) -> None:
        self._fold()
        if not self._showing:
            self.changed.emit()

    @Slot()
    def _number_edited(self) -> None:
        if not self._showing:
            self._showing = True
            self.automatic.setChecked(False)
            self._showing = False
            self._edited()

    def _fold(self) -> None:
        """Show what the kind of cut needs."""
        self._of_grid.setVisible(self.grid.isChecked())
        self._of_packed.setVisible(self.packed.isChecked())

    def _show_numbers(self, grid: Grid) -> None:
        numbers = (grid.tile_width, grid.tile_height, grid.left, grid.top, grid.spacing)
        for name, value in zip(_GRID, numbers, strict=True):
            self.boxes[name].setValue(value)

    def _rows(self, names: tuple[str, ...]) -> QGridLayout:
        """A box for each of these settings, as they are declared."""
        rows = QGridLayout()
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setVerticalSpacing(factory.GRID)
        rows.setColumnMinimumWidth(0, _LABEL_WIDTH)
        rows.setColumnStretch(1, 1)
        for row, item in enumerate(item for item in settings_of(ImportOptions) if item.name in names):
            self.boxes[item.name] = box = whole_box(item)
            factory.describe(box, f"{item.label} ({item.unit})", item.help)
            label = QLabel(item.label)
            label.setBuddy(box)
            rows.addWidget(label, row, 0)
            rows.addWidget(box, row, 1)
        return rows


def _in_words(grid: Grid) -> str:
    """'Seen: tiles of 16 × 16 pixels, 1 px apart, from 1 px on'."""
    words = f"Seen: tiles of {grid.tile_width} × {grid.tile_height} pixels"
    if grid.spacing:
        words += f", {grid.spacing} px apart"
    if grid.left == grid.top and grid.left:
        words += f", from {grid.left} px on"
    elif grid.left or grid.top:
        words += f", from {grid.left} px across and {grid.top} px down"
    return words
