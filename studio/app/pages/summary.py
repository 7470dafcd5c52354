"""What the open sprites are: how many, of which classes and colours, on which canvas."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QWidget

from studio.app import parts
from studio.app.answers import PaletteFound
from studio.app.form import ConfigForm
from studio.app.importing import Importing
from studio.app.pages.classes import ClassList
from studio.app.widgets import labels
from studio.app.widgets.disclosure import Disclosure
from studio.app.widgets.swatches import Swatches
from studio.core import wording
from studio.data.importing import ImportOptions, SpritesImported

_MOST_NUMBERS = 3  # that are named
_APPLY = "Read the files again with these settings; the files stay as they are."


class Summary(QWidget):
    """The left side of the Sprites page. The page connects `train`, `reopen` and `see_cells`."""

    def __init__(self, importing: Importing) -> None:
        super().__init__()
        self._importing = importing
        self.classes = ClassList()
        self.classes.setMinimumHeight(200)
        self.form = ConfigForm(ImportOptions())
        self.apply = parts.button("Apply", _APPLY)
        self.apply.setEnabled(False)
        self.see_cells = parts.button("See the cells…", "See the sheets with their cells drawn over them.")
        self.train = parts.button("Train on these", "Go to the Train page.", "train", "primary")
        self.reopen = parts.button("Open others…", "Open another folder of sprites.", "folder")
        self._title = labels.title("")
        self._facts = labels.caption("")
        self._colours = labels.heading("Colours")
        self._swatches = Swatches()
        buttons = parts.row(self.apply, self.see_cells)
        options = Disclosure("Canvas, classes and sheets", parts.panel(parts.column(self.form, buttons)))
        box = parts.column(
            self._title, self._facts, self.train, self.reopen, labels.heading("Classes"), self.classes, options,
            self._colours, self._swatches, 1,
        )  # fmt: skip
        box.setContentsMargins(3 * parts.GRID, 3 * parts.GRID, 2 * parts.GRID, parts.GRID)
        box.setStretchFactor(self.classes, 1)
        self.setLayout(box)
        self.form.changed.connect(self._options_changed)
        self.apply.clicked.connect(self._apply)
        importing.palette_found.connect(self._show_palette)

    def show_result(self, result: SpritesImported) -> None:
        """Show what was opened; its colours come a moment later."""
        sprites = result.sprites
        self._title.setText(sprites.title)
        classes = wording.count(len(sprites.class_names), "class", "classes")
        facts = f"{wording.count(len(sprites), 'sprite')} of {sprites.size} × {sprites.size} pixels in {classes}"
        if sprites.target_names:
            facts += f", with {_listed(sprites.target_names)}"
        self._facts.setText(facts)
        self.classes.show_classes(sprites)
        self.form.set_config(self._importing.options)
        self.apply.setEnabled(False)
        self._swatches.set_palette(sprites.rgba[0, :0, 0])

    @Slot()
    def _options_changed(self) -> None:
        parts.enable(self.apply, self.form.problem(), _APPLY)

    @Slot()
    def _apply(self) -> None:
        options = self.form.config()
        assert isinstance(options, ImportOptions)
        self._importing.change_options(options)

    @Slot(object)
    def _show_palette(self, found: PaletteFound) -> None:
        self._colours.setText(f"Colours ({len(found.colours)})")
        self._swatches.set_palette(found.colours, found.counts)


def _listed(names: Sequence[str]) -> str:
    """The numbers that sprites have: 'numbers (price, weight and 3 more)'."""
    more = f" and {len(names) - _MOST_NUMBERS} more" if len(names) > _MOST_NUMBERS else ""
    return f"{'numbers' if len(names) > 1 else 'a number'} ({', '.join(names[:_MOST_NUMBERS])}{more})"
