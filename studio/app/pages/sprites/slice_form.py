"""Form for slicing a sheet: grid numbers or gaps, and classes."""

from PySide6.QtCore import QSignalBlocker, Signal, Slot
from PySide6.QtWidgets import QGridLayout, QLabel, QRadioButton, QSpinBox, QWidget

from studio.app.widgets import factory
from studio.app.widgets.combo_box import ComboBox
from studio.app.widgets.config_form import int_box
from studio.core.config import settings_of
from studio.core.formatting import percent
from studio.data.import_result import SheetSummary
from studio.data.options import ImportOptions, SheetGrid
from studio.data.sheets.slicing import grid_from_options

_GRID = ("tile", "tile_height", "margin", "margin_top", "spacing")
_CLASSES = {"folder": "A class per folder", "sheet": "A class per sheet", "row": "A class per row"}
_USUAL_TILE = 16
_LABEL_WIDTH = 96


class SliceForm(QWidget):
    """Form for the import settings of sheets, or for the grid of a single sheet."""

    changed = Signal()  # the user changed a value

    def __init__(self) -> None:
        super().__init__()
        self._base = ImportOptions()
        self._shared: ImportOptions | None = None  # the other sheets' settings, if the shown sheet has its own grid
        self._has_others = False
        self._auto_classes = ""  # the choice of classes that "auto" stands for
        self._showing = False  # the program changes the controls
        self.grid = QRadioButton("Grid")
        self.packed = QRadioButton("Irregular")
        self.automatic = factory.check_box("Auto", "Detect each sheet's grid.")
        self.alone = factory.check_box("This sheet only", "Use these numbers for this sheet only.")
        self.boxes: dict[str, QSpinBox] = {}
        self.classes = ComboBox()
        self.proposal = factory.caption("")
        self._grid_box = factory.panel(factory.column(self.automatic, self.proposal, self._rows(_GRID), self.alone))
        self._packed_box = factory.panel(self._rows(("gap",)))
        factory.set_name_and_tip(self.grid, "Grid", "Slice the sheet into tiles of equal size.")
        factory.set_name_and_tip(self.packed, "Irregular", "Split the sheet at transparent gaps.")
        factory.set_name_and_tip(self.classes, "Classes", "Make a class from each folder, sheet or row.")
        for value, text in _CLASSES.items():
            self.classes.addItem(text, value)
        for name in ("tile", "tile_height"):
            self.boxes[name].setMinimum(1)
        self.boxes["margin_top"].setMinimum(0)
        choice = factory.row(self.grid, self.packed, 1, spacing=2 * factory.GRID)
        self.setLayout(factory.column(choice, self._grid_box, self._packed_box, self.classes))
        self.grid.toggled.connect(self._on_edited)
        self.automatic.toggled.connect(self._on_automatic_toggled)
        self.alone.toggled.connect(self._on_alone_toggled)
        self.classes.currentIndexChanged.connect(self._on_edited)
        for name in _GRID:
            self.boxes[name].valueChanged.connect(self._on_number_edited)
        self.boxes["gap"].valueChanged.connect(self._on_edited)

    def set_options(self, options: ImportOptions, summary: SheetSummary, *, has_others: bool = False) -> None:
        """Show import settings. has_others: whether the settings also slice other sheets."""
        self._has_others = has_others
        self._auto_classes = summary.classes or "sheet"
        for index, (choice, text) in enumerate(_CLASSES.items()):
            number = summary.count_classes(choice)
            self.classes.setItemText(index, f"{text} ({number:,})" if number else text)
        self._show_shared(options)

    def show_grid(self, grid: SheetGrid | None) -> None:
        """Show a sheet's own grid; None shows the settings shared by the other sheets."""
        if grid is not None:
            self._shared = self.options()
            self._show_alone(grid)
        elif self._shared is not None:
            self._show_shared(self._shared)

    def own_grid(self) -> SheetGrid | None:
        """Return the shown sheet's own grid; None for a sheet with the shared settings."""
        return None if self._shared is None else grid_from_options(self._numbered(ImportOptions()))

    def _show_shared(self, options: ImportOptions) -> None:
        self._base, self._shared, self._showing = options, None, True
        self.alone.setChecked(False)
        self.packed.setChecked(options.sheets == "packed")
        self.grid.setChecked(options.sheets != "packed")
        self.automatic.setChecked(not options.tile)
        self.boxes["gap"].setValue(options.gap)
        classes = options.sheet_classes
        self.classes.setCurrentIndex(self.classes.findData(self._auto_classes if classes == "auto" else classes))
        self._showing = False
        self._show_numbers(grid_from_options(options.replace(tile=options.tile or _USUAL_TILE)))
        self._refresh_visibility()

    def options(self) -> ImportOptions:
        """Return the import settings shared by all sheets without a grid of their own."""
        classes = str(self.classes.currentData())
        if self._base.sheet_classes == "auto" and classes == self._auto_classes:
            classes = "auto"
        if self._shared is not None:
            return self._shared.replace(sheet_classes=classes)
        sheets = "packed" if self.packed.isChecked() else "grid"
        chosen = self._base.replace(sheets=sheets, gap=self.boxes["gap"].value(), sheet_classes=classes)
        if self.automatic.isChecked():
            return chosen.replace(tile=0, tile_height=0, margin=0, margin_top=-1, spacing=0)
        return self._numbered(chosen)

    def _numbered(self, chosen: ImportOptions) -> ImportOptions:
        """Return these import settings with the tile size, margins and spacing of the form."""
        numbers = {name: self.boxes[name].value() for name in _GRID}
        if numbers["tile_height"] == numbers["tile"]:
            numbers["tile_height"] = 0
        if numbers["margin_top"] == numbers["margin"]:
            numbers["margin_top"] = -1
        return chosen.replace(**numbers)

    def show_proposal(self, grid: SheetGrid | None) -> None:
        """Show the detected grid as text, and in automatic mode also in the number fields."""
        if grid is None:
            self.proposal.setText("No grid detected. Enter the tile size, or try Irregular.")
            return
        confidence = percent(round(grid.confidence, 2)).replace(" ", "\N{NO-BREAK SPACE}")
        self.proposal.setText(f"{_grid_text(grid)} ({confidence})")
        if self.automatic.isChecked():
            self._show_numbers(grid)

    @Slot(object)
    def set_moved_grid(self, grid: SheetGrid) -> None:
        """Show the grid that the user has dragged on the canvas."""
        self._switch_auto_off()
        self._show_numbers(grid)
        self._on_edited()

    @Slot(bool)
    def _on_alone_toggled(self, alone: bool) -> None:
        """Give the shown sheet its own grid, or use the shared settings again."""
        if self._showing:
            return
        if alone:
            self._shared = self.options()
            self._show_alone(None)
        elif self._shared is not None and not self._shared.uses_detected_grids:
            self._show_shared(self._shared)
        self._shared = self._shared if alone else None  # automatic settings give way to the shown numbers
        self._on_edited()

    @Slot(bool)
    def _on_automatic_toggled(self, automatic: bool) -> None:
        """Switch automatic detection on or off. Switching on removes the shown sheet's own grid."""
        if automatic and self._shared is not None and not self._showing:
            self._show_shared(self._shared)
        self._on_edited()

    def _show_alone(self, grid: SheetGrid | None) -> None:
        """Show the controls for a sheet with its own grid. grid: None keeps the shown numbers."""
        self._showing = True
        self.grid.setChecked(True)
        self.automatic.setChecked(False)
        self.alone.setChecked(True)
        self._showing = False
        if grid is not None:
            self._show_numbers(grid)
        self._refresh_visibility()

    def _switch_auto_off(self) -> None:
        """Switch Auto off. With other sheets open, the numbers become the shown sheet's own grid."""
        if self.automatic.isChecked() and self._has_others:
            self._shared = self.options()
            self._show_alone(None)
        with QSignalBlocker(self.automatic):
            self.automatic.setChecked(False)

    @Slot()
    def _on_edited(self) -> None:
        self._refresh_visibility()
        if not self._showing:
            self.changed.emit()

    @Slot()
    def _on_number_edited(self) -> None:
        if not self._showing:
            self._switch_auto_off()
            self._on_edited()

    def _refresh_visibility(self) -> None:
        """Show only the controls for the chosen method."""
        self._grid_box.setVisible(self.grid.isChecked())
        self._packed_box.setVisible(self.packed.isChecked())
        self.alone.setVisible(self._has_others)
        reason = "" if self._shared is None else "Uncheck 'This sheet only' first."
        factory.set_enabled(self.packed, reason)
        is_found = self._shared is not None and self._shared.uses_detected_grids
        factory.set_enabled(self.automatic, "" if is_found else reason)

    def _show_numbers(self, grid: SheetGrid) -> None:
        numbers = (grid.tile_width, grid.tile_height, grid.left, grid.top, grid.spacing)
        for name, value in zip(_GRID, numbers, strict=True):
            with QSignalBlocker(self.boxes[name]):
                self.boxes[name].setValue(value)

    def _rows(self, names: tuple[str, ...]) -> QGridLayout:
        """Return a layout with a labelled spin box for each of these settings."""
        rows = QGridLayout()
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setVerticalSpacing(factory.GRID)
        rows.setColumnMinimumWidth(0, _LABEL_WIDTH)
        rows.setColumnStretch(1, 1)
        for row, item in enumerate(item for item in settings_of(ImportOptions) if item.name in names):
            self.boxes[item.name] = box = int_box(item)
            box.setSpecialValueText("")  # here the numbers are the real ones
            factory.set_name_and_tip(box, f"{item.label} ({item.unit})", item.help)
            label = QLabel(item.label)
            label.setBuddy(box)
            rows.addWidget(label, row, 0)
            rows.addWidget(box, row, 1)
        return rows


def _grid_text(grid: SheetGrid) -> str:
    """Return a grid as text: 'Detected 16 × 16, spacing 1, margin 2'."""
    text = f"Detected {grid.tile_width} × {grid.tile_height}"
    if grid.spacing:
        text += f", spacing {grid.spacing}"
    if grid.left == grid.top and grid.left:
        text += f", margin {grid.left}"
    elif grid.left or grid.top:
        text += f", margins {grid.left} and {grid.top}"
    return text
