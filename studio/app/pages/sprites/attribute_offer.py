"""A line that offers to read folder levels, or words in file names, as attributes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QFrame, QLineEdit

from studio.app import theme
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.widgets import factory
from studio.app.widgets.layout import FlowLayout
from studio.core.errors import BadInputError
from studio.data.attributes.reading import parse_names
from studio.data.importing.importing import SpritesImported

_READ = "Read these as attributes; classes stay. Undo takes the attributes away. Your files are not changed."
_NAMES = "Names of the attributes, separated by commas. - skips one."


class AttributeOffer(QFrame):
    """The offer above the grid, with the names of the attributes to edit."""

    def __init__(self, open_sprites: OpenSprites) -> None:
        super().__init__()
        self._open_sprites = open_sprites
        self._source = ""
        self._closed_for: Sequence[Path] = ()
        self.text = factory.text("")
        self.names = QLineEdit()
        factory.set_name_and_tip(self.names, "Names of attributes", _NAMES)
        self.names.setMinimumWidth(180)
        self._error = factory.FieldError(self.names, _NAMES)
        self.accept = factory.button("Use as attributes", _READ, slot=self._on_accept)
        self.close_line = factory.tool_button("close", "Close", "Hide this message.", self._on_close)
        theme.set_role(self, "card")
        step = factory.GRID
        line, flow = factory.row(self.text, self.close_line, grows=0), FlowLayout(step, step, self.names, self.accept)
        self.setLayout(factory.column(line, flow, self._error, margin=(2 * step, step, step, step)))
        self.names.returnPressed.connect(self._on_accept)
        self.names.textChanged.connect(self._on_text_changed)
        open_sprites.imported.connect(self._on_imported)
        self.hide()

    @Slot(object)
    def _on_imported(self, result: SpritesImported) -> None:
        proposed = result.proposed_attributes
        if proposed is not None:
            self._source = proposed.source
            what = "Folders" if proposed.source == "folders" else "File names"
            self.text.setText(f"{what} look like attributes: {proposed.describe()}.")
            self.names.setText(", ".join(proposed.names))
        self.setVisible(proposed is not None and self._open_sprites.opened.paths != self._closed_for)

    @Slot()
    def _on_text_changed(self) -> None:
        self._error.show_reason("")

    @Slot()
    def _on_accept(self) -> None:
        try:
            names = parse_names(self.names.text())
        except BadInputError as error:
            self._error.show_reason(f"{error.title} {error.hint}")
            return
        changes = {"attributes": self._source, "attribute_names": ",".join(names)}
        self._open_sprites.change_options(self._open_sprites.latest.options.replace(**changes), "read attributes")

    @Slot()
    def _on_close(self) -> None:
        self._closed_for = self._open_sprites.opened.paths
        self.hide()
