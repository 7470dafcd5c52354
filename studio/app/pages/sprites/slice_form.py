"""The numbers of a cut: those of a grid or of packed sprites, and what becomes a class."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QCheckBox, QComboBox, QGridLayout, QLabel, QRadioButton, QSpinBox, QWidget

from studio.app.widgets import factory
from studio.app.widgets.config_form import int_box
from studio.core.config import settings_of
from studio.core.formatting import percent
from studio.data.options import ImportOptions, SheetGrid
from studio.data.sheets.slicing import grid_from_options

_GRID = ("tile", "tile_height", "margin", "margin_top", "spacing")
_USUAL_TILE = 16
_LABEL_WIDTH = 96
_AUTOMATIC = "Detect each sheet's grid."
_PACKED = "Split the sheet at transparent gaps."
_ALONE = "Use these numbers for this sheet only. The other sheets keep their settings."
_IS_ALONE = "Untick 'This sheet alone' first."
_CLASSES = {"sheet": "Each sheet is a class", "row": "Each row is a class"}


class SliceForm(QWidget):
    """Edits an import's settings for sheets, or the grid of a single sheet. `changed`: by the user."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._base = ImportOptions()
        self._shared: ImportOptions | None = (
            None  # the other sheets' settings, while the sheet on show has its own grid
        )
        self._has_others = False
        self._showing = False
        self.grid = QRadioButton("Grid")
        self.packed = QRadioButton("Packed")
        self.automatic = QCheckBox("Automatic")
        self.alone = QCheckBox("This sheet alone")
        self.boxes: dict[str, QSpinBox] = {}
        self.classes = QComboBox()
        self.proposal = factory.caption("")
        self._of_grid = factory.panel(factory.column(self.automatic, self.proposal, self._rows(_GRID), self.alone))
        self._of_packed = factory.panel(self._rows(("gap",)))
        factory.set_name_and_tip(self.grid, "Grid", "Cut the sheet into tiles of one size, in rows and columns.")
        factory.set_name_and_tip(self.packed, "Packed", _PACKED)
        factory.set_name_and_tip(self.automatic, "Automatic", _AUTOMATIC)
        factory.set_name_and_tip(self.alone, "This sheet alone", _ALONE)
        factory.set_name_and_tip(
            self.classes, "Classes", "What becomes a class of its own: each sheet, or each of its rows."
        )
        for value, text in _CLASSES.items():
            self.classes.addItem(text, value)
        for name in ("tile", "tile_height"):
            self.boxes[name].setMinimum(1)
        self.boxes["margin_top"].setMinimum(0)
        choice = factory.row(self.grid, self.packed, 1, spacing=2 * factory.GRID)
        self.setLayout(factory.column(choice, self._of_grid, self._of_packed, self.classes))
        self.grid.toggled.connect(self._on_edited)
        self.automatic.toggled.connect(self._on_automatic_toggled)
        self.alone.toggled.connect(self._on_alone_toggled)
        self.classes.currentIndexChanged.connect(self._on_edited)
        for name in _GRID:
            self.boxes[name].valueChanged.connect(self._on_number_edited)
        self.boxes["gap"].valueChanged.connect(self._on_edited)

    def set_options(self, options: ImportOptions, *, has_others: bool = False) -> None:
        """Show the settings of an import. has_others: whether the settings also cut other sheets."""
        self._has_others = has_others
        self._show_shared(options)

    def show_grid(self, grid: SheetGrid | None) -> None:
        """Show a sheet's own grid; None shows the settings shared by the other sheets."""
        if grid is not None:
            self._shared = self.options()
            self._show_alone(grid)
        elif self._shared is not None:
            self._show_shared(self._shared)

    def own_grid(self) -> SheetGrid | None:
        """Return the own grid of the sheet on show; None when the sheet has the shared settings."""
        return None if self._shared is None else grid_from_options(self._numbered(ImportOptions()))

    def _show_shared(self, options: ImportOptions) -> None:
        self._base, self._shared = options, None
        self._showing = True
        self.alone.setChecked(False)
        self.packed.setChecked(options.sheets == "packed")
        self.grid.setChecked(options.sheets != "packed")
        self.automatic.setChecked(not options.tile)
        self.boxes["gap"].setValue(options.gap)
        self.classes.setCurrentIndex(self.classes.findData(options.sheet_classes))
        self._show_numbers(grid_from_options(options.replace(tile=options.tile or _USUAL_TILE)))
        self._showing = False
        self._fold()

    def options(self) -> ImportOptions:
        """Return the shared settings: they cut each sheet without its own grid."""
        classes = str(self.classes.currentData())
        if self._shared is not None:
            return self._shared.replace(sheet_classes=classes)
        chosen = self._base.replace(
            sheets="packed" if self.packed.isChecked() else "grid",
            gap=self.boxes["gap"].value(),
            sheet_classes=classes,
        )
        if self.automatic.isChecked():
            return chosen.replace(tile=0, tile_height=0, margin=0, margin_top=-1, spacing=0)
        return self._numbered(chosen)

    def _numbered(self, chosen: ImportOptions) -> ImportOptions:
        """Return these settings with the numbers on show."""
        numbers = {name: self.boxes[name].value() for name in _GRID}
        if numbers["tile_height"] == numbers["tile"]:
            numbers["tile_height"] = 0
        if numbers["margin_top"] == numbers["margin"]:
            numbers["margin_top"] = -1
        return chosen.replace(**numbers)

    def show_proposal(self, grid: SheetGrid | None) -> None:
        """Say what grid is seen in the sheet; where it is the one to be taken, show its numbers."""
        if grid is None:
            self.proposal.setText("No grid is seen in this sheet: give its numbers, or try Packed.")
            return
        self.proposal.setText(f"{_grid_text(grid)}. {percent(round(grid.confidence, 2))} sure.")
        if self.automatic.isChecked():
            self._showing = True
            self._show_numbers(grid)
            self._showing = False

    @Slot(object)
    def set_moved_grid(self, grid: SheetGrid) -> None:
        """Take the numbers of a grid that the user has moved."""
        self._leave_automatic()
        self._showing = True
        self._show_numbers(grid)
        self._showing = False
        self._on_edited()

    @Slot(bool)
    def _on_alone_toggled(self, alone: bool) -> None:
        """Give the sheet on show its own grid, or remove the own grid.

        After that, all sheets share the numbers of the other sheets, or the numbers on show if those are automatic.
        """
        if self._showing:
            return
        if alone:
            self._shared = self.options()
            self._show_alone(None)
        elif self._shared is not None and not self._shared.uses_detected_grids:
            self._show_shared(self._shared)
        self._shared = self._shared if alone else None
        self._on_edited()

    @Slot(bool)
    def _on_automatic_toggled(self, automatic: bool) -> None:
        """Detect every sheet's grid, and drop the own grid of the sheet on show."""
        if automatic and self._shared is not None and not self._showing:
            self._show_shared(self._shared)
        self._on_edited()

    def _show_alone(self, grid: SheetGrid | None) -> None:
        """Give the sheet on show its own grid: `grid`, or the numbers on show for None."""
        self._showing = True
        self.grid.setChecked(True)
        self.automatic.setChecked(False)
        self.alone.setChecked(True)
        if grid is not None:
            self._show_numbers(grid)
        self._showing = False
        self._fold()

    def _leave_automatic(self) -> None:
        """Switch Automatic off; next to other sheets, the numbers become the own grid of the sheet on show."""
        if not self.automatic.isChecked():
            return
        if self._has_others:
            self._shared = self.options()
            self._show_alone(None)
        self._showing = True
        self.automatic.setChecked(False)
        self._showing = False

    @Slot()
    def _on_edited(self) -> None:
        self._fold()
        if not self._showing:
            self.changed.emit()

    @Slot()
    def _on_number_edited(self) -> None:
        if not self._showing:
            self._leave_automatic()
            self._on_edited()

    def _fold(self) -> None:
        """Show what the kind of cut needs."""
        self._of_grid.setVisible(self.grid.isChecked())
        self._of_packed.setVisible(self.packed.isChecked())
        self.alone.setVisible(self._has_others)
        reason = "" if self._shared is None else _IS_ALONE
        factory.set_enabled(self.packed, reason, _PACKED)
        is_found = self._shared is not None and self._shared.uses_detected_grids
        factory.set_enabled(self.automatic, "" if is_found else reason, _AUTOMATIC)

    def _show_numbers(self, grid: SheetGrid) -> None:
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
            self.boxes[item.name] = box = int_box(item)
            factory.set_name_and_tip(box, f"{item.label} ({item.unit})", item.help)
            label = QLabel(item.label)
            label.setBuddy(box)
            rows.addWidget(label, row, 0)
            rows.addWidget(box, row, 1)
        return rows


def _grid_text(grid: SheetGrid) -> str:
    """'Seen: tiles of 16 × 16 pixels, 1 px apart, from 1 px on'."""
    text = f"Seen: tiles of {grid.tile_width} × {grid.tile_height} pixels"
    if grid.spacing:
        text += f", {grid.spacing} px apart"
    if grid.left == grid.top and grid.left:
        text += f", from {grid.left} px on"
    elif grid.left or grid.top:
        text += f", from {grid.left} px across and {grid.top} px down"
    return text
