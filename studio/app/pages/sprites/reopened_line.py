"""The line about import settings and edits that the studio remembers for the open sprites."""

from PySide6.QtCore import Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame

from studio.app import theme
from studio.app.pages.sprites.slice_texts import sliced_sheets
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.widgets import factory
from studio.core.formatting import count
from studio.data.import_result import SpritesImported
from studio.data.options import ImportOptions

_AS_FILES = (
    "Use the usual import settings, and the classes and colours of the files. Undo brings your changes back. ({undo})"
)
_NAMES = frozenset(("rows", "columns"))
_NARROW = 640  # logical pixels
_SLICING = frozenset(
    ("sheets", "tile", "tile_height", "margin", "margin_top", "spacing", "sheet_grids", "gap", "sheet_classes", "sets",
     *_NAMES)
)  # fmt: skip


class ReopenedLine(QFrame):
    """Says how the files were opened differently from a first time, until the user changes something."""

    def __init__(self, open_sprites: OpenSprites) -> None:
        super().__init__()
        self._open_sprites = open_sprites
        self.text = factory.text("")
        self.as_files = factory.button("Open as the files are", _AS_FILES, slot=self._on_as_files_clicked)
        close = factory.tool_button("close", "Close", "Hide this message.", self.hide)
        theme.set_role(self, "card")
        step = factory.GRID
        self._body = factory.row(self.text, factory.row(self.as_files, 1), grows=0)
        self.setLayout(factory.row(self._body, close, grows=0, margin=(2 * step, step, step, step)))
        self.hide()
        open_sprites.imported.connect(self._on_imported)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the button below the text in a narrow window."""
        super().resizeEvent(event)
        is_narrow = self.width() < _NARROW
        self._body.setDirection(QBoxLayout.Direction.TopToBottom if is_narrow else QBoxLayout.Direction.LeftToRight)

    @Slot(object)
    def _on_imported(self, result: SpritesImported) -> None:
        facts = describe_memory(result, self._open_sprites.options) if self._open_sprites.was_reopened() else ""
        self.text.setText(f"Opened as you left it: {facts}.")
        self.setVisible(bool(facts))

    @Slot()
    def _on_as_files_clicked(self) -> None:
        groups = self._open_sprites.result.note_groups if self._open_sprites.result else {}
        has_edits = any(groups.get(group) for group in ("moved", "recoloured", "attributed"))
        options = ImportOptions(edits="off" if has_edits else "on")
        self._open_sprites.change_options(options, "open as the files are")


def describe_memory(result: SpritesImported, options: ImportOptions) -> str:
    """Describe how stored options and edits changed an import: '230 sheets sliced, 1 sprite excluded'; '' if none."""
    sliced, excluded = len(sliced_sheets(result)), len(result.quarantine_groups.get("chosen", ()))
    moved = len(result.note_groups.get("moved", ()))
    recoloured = len(result.note_groups.get("recoloured", ()))
    has_slicing = sliced > 0 and bool(_SLICING & options.changed().keys())
    into = " into characters" if len(result.sprites.sets) else ""
    facts = [f"{count(sliced, 'sheet')} sliced{into}"] if has_slicing else []
    facts += [f"{count(excluded, 'sprite')} excluded"] if excluded else []
    facts += [f"{count(moved, 'sprite')} moved to another class"] if moved else []
    facts += [f"{count(recoloured, 'sprite')} recoloured"] if recoloured else []
    attributed = len(result.note_groups.get("attributed", ()))
    facts += [f"attributes of {count(attributed, 'sprite')} set"] if attributed else []
    told = (_SLICING if has_slicing else frozenset()) | (frozenset({"leave_out"}) if excluded else frozenset())
    named = (_NAMES & options.changed().keys()) - told
    facts += ["views and frames renamed"] if named else []
    further = len(options.changed().keys() - told - named)
    facts += [f"{count(further, 'import setting')} changed"] if further else []
    return ", ".join(facts)
