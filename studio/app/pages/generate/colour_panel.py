"""Choose the colours of new sprites: as drawn, the training palette, or a palette file."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QWidget

from studio.app import dialogs
from studio.app.background.model_jobs import SavedModel
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.session import Session
from studio.app.state.undo import UndoStep
from studio.app.widgets import factory, pasted
from studio.app.widgets.swatches import Swatches
from studio.core import formatting
from studio.data.colour.palette import Palette, display_order
from studio.data.colour.quantizing import BAYER, NO_DITHER
from studio.data.colour.recolouring import ColourMode
from studio.data.palettes.files import has_palette_suffix

_OWN, _DRAWN, _FILE, _OPEN = "own", "drawn", "file", "open"
_MOST_SHOWN = 256  # swatches
_TIP = "A few colours from the training sprites, the colours as drawn, or a palette file. You can drop the file here."


class ColourPanel(QWidget):
    """Chooses the palette for new sprites: training palette, colours as drawn, or a palette file.

    Choices add steps to the Generate page's undo history.

    changed: the user chose other colours. own_known: loaded the chosen model's training palette, uint8 [K, 3].
    """

    changed = Signal()
    own_known = Signal(object)

    def __init__(self, session: Session, models: ModelChoice) -> None:
        super().__init__()
        self._session, self._models = session, models
        self._kind = _OWN
        self._file: tuple[Path, Palette] | None = None
        self._restored: Path | None = None  # the last session's palette file, while the file loads
        self._requested_run: Path | None = None  # the run of `_own`, or of the pending request
        self._own: NDArray[np.uint8] = np.zeros((0, 3), np.uint8)
        self.setAcceptDrops(True)
        self.box = factory.combo("Colours", _TIP)
        for text, kind in (("Training palette", _OWN), ("As drawn", _DRAWN), ("From a file…", _OPEN)):
            self.box.addItem(text, kind)
        self.dither = factory.check_box("Dither", "Approximate missing colours with a pattern of two palette colours.")
        self.swatches = Swatches()
        factory.set_name_and_tip(self.swatches, "Palette", "The palette for new sprites.")
        self._about = factory.caption("")
        self.setLayout(factory.column(factory.labelled("Colours", self.box), self.dither, self.swatches, self._about))
        self.dither.setChecked(bool(session.settings.text("generate_dither")))
        self.box.activated.connect(self._on_kind_activated)
        self.dither.toggled.connect(self.changed)
        models.changed.connect(self._on_model_changed)
        session.palettes.loaded.connect(self._on_palette_loaded)
        session.palettes.style_read.connect(self._on_style_read)
        self._show()

    def choice(self) -> ColourMode:
        if self._kind != _FILE or self._file is None:
            return ColourMode(self._kind != _DRAWN)
        return ColourMode(True, self._file[1], BAYER if self.dither.isChecked() else NO_DITHER)

    def restore(self, *, true_pixels: bool) -> None:
        """Choose the training palette (`true_pixels`) or the colours as drawn; load the last palette file again."""
        self._kind = _OWN if true_pixels else _DRAWN
        self._show()
        path = self._session.settings.text("generate_palette")
        if path:
            self._restored = Path(path)
            self._session.palettes.load(self._restored)

    def save_state(self) -> None:
        """Store the palette file and the dithering."""
        path = str(self._file[0]) if self._file is not None and self._kind == _FILE else ""
        self._session.settings.set_text("generate_palette", path)
        self._session.settings.set_text("generate_dither", "yes" if self.dither.isChecked() else "")

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a single palette file; the window handles other drops."""
        event.setAccepted(_palette_in(event) is not None)

    def dropEvent(self, event: QDropEvent) -> None:
        path = _palette_in(event)
        if path is not None:
            event.acceptProposedAction()
            self._session.palettes.load(path)

    def _show(self) -> None:
        self.box.setCurrentIndex(self.box.findData(self._kind))
        factory.set_enabled(self.dither, "" if self._kind == _FILE else "Choose a palette file first.")
        if self._kind == _FILE and self._file is not None:
            colours, which = self._file[1].colours, "first"
            self.swatches.set_palette(colours[:_MOST_SHOWN], self._file[1].colour_names[:_MOST_SHOWN])
        else:
            colours, which = self._own if self._kind == _OWN else self._own[:0], "most used"
            self.swatches.set_palette(colours[:_MOST_SHOWN][display_order(colours[:_MOST_SHOWN])])
        count = formatting.count(len(colours), "colour")
        self._about.setText(f"The {which} {_MOST_SHOWN} of {count}." if len(colours) > _MOST_SHOWN else count)
        for widget in (self.swatches, self._about):
            widget.setVisible(bool(len(colours)))

    @Slot(int)
    def _on_kind_activated(self, index: int) -> None:
        kind = self.box.itemData(index)
        if kind == _OPEN:
            self.box.setCurrentIndex(self.box.findData(self._kind))  # until the palette has loaded
            path = dialogs.choose_palette(self, self._session.settings)
            if path is not None:
                self._session.palettes.load(path)
        elif kind != self._kind:
            self._choose(kind, self._file)

    @Slot(object, object)
    def _on_palette_loaded(self, path: Path, palette: Palette) -> None:
        if path == self._restored:
            self._apply(_FILE, (path, palette))
        else:
            self._choose(_FILE, (path, palette))
        self._restored = None

    def _choose(self, kind: str, file: tuple[Path, Palette] | None) -> None:
        """Choose a palette, with an undo step."""
        undo, redo = partial(self._apply, self._kind, self._file), partial(self._apply, kind, file)
        redo()
        self._session.generate_history.add(UndoStep("change colours", undo, redo))

    def _apply(self, kind: str, file: tuple[Path, Palette] | None) -> None:
        self._kind, self._file = kind, file
        before = self.box.findData(_FILE)
        if before >= 0:
            self.box.removeItem(before)
        if file is not None:
            self.box.insertItem(self.box.findData(_OPEN), file[1].name, _FILE)
        self._show()
        self.changed.emit()

    @Slot()
    def _on_model_changed(self) -> None:
        """Load and show the chosen model's training palette."""
        source = self._models.source()
        if isinstance(source, SavedModel):
            if source.path != self._requested_run:
                self._requested_run = source.path
                self._session.palettes.read_style(source.path)
        elif source is not None and source.live is not None:
            self._requested_run = None
            self._show_own(source.live.style.palette)

    @Slot(object, object)
    def _on_style_read(self, run: Path, colours: NDArray[np.uint8]) -> None:
        if run == self._requested_run:
            self._show_own(colours)

    def _show_own(self, colours: NDArray[np.uint8]) -> None:
        self._own = colours
        self._show()
        self.own_known.emit(colours)


def _palette_in(event: QDropEvent) -> Path | None:
    """Return the single dragged palette file; None for other data."""
    paths = pasted.local_paths(event.mimeData())
    return paths[0] if len(paths) == 1 and has_palette_suffix(paths[0]) else None
