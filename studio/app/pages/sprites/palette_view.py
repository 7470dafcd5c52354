"""The open sprites' palette: view, filter by a colour, save and copy."""

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from studio.app import dialogs
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.combo_box import ComboBox
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.swatches import Swatches, hex_code
from studio.core.arrays import Rgba
from studio.core.formatting import count, number
from studio.data.colour.colour_counts import ColourCounts
from studio.data.colour.palette import Palette, display_order
from studio.data.sprites import Sprites

_BY_HUE, _BY_USE = "hue", "use"


class PaletteView(QWidget):
    """The palette with a colour filter."""

    chosen = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._sprites: Sprites | None = None
        self._use: ColourCounts | None = None
        self._order = np.zeros(0, np.int64)  # palette index of each swatch
        self._wanted: Rgba | None = None  # the colour to filter by
        self.indices: NDArray[np.int64] | None = None  # int64 [n], sprites with the chosen colour; None for all
        self.swatches = Swatches(choosable=True)
        tip = "Click a colour to filter the sprites. Click again, or press Escape, to show all."
        factory.set_name_and_tip(self.swatches, "Colours of the sprites", tip)
        self.order = ComboBox()
        self.order.addItem("By hue", _BY_HUE)
        self.order.addItem("By use", _BY_USE)
        factory.set_name_and_tip(self.order, "Sort colours", "Sort by hue, or by number of uses.")
        self.order.setCurrentIndex(max(0, self.order.findData(session.settings.text("palette_order", _BY_HUE))))
        tip = "Save a palette file (.gpl, .pal, .hex…)."
        self.save = factory.button("Save palette…", tip, "save", slot=self._on_save_clicked)
        self.copy = factory.button("Copy", "Copy the colours as hex codes.", "copy", slot=self._on_copy_clicked)
        tip = "Clear the colour filter. (Escape)"
        self.show_all = factory.button("Show all", tip, role="flat", slot=self.clear)
        self._title, self._about, self._status = factory.heading("Colours"), factory.caption(""), factory.caption("")
        head = factory.row(self._title, self.order, grows=0)
        text = factory.row(self._status, self.show_all, grows=0)
        buttons = FlowLayout(factory.GRID, factory.GRID, self.save, self.copy)
        self.setLayout(factory.column(head, self._about, self.swatches, text, buttons))
        session.open_sprites.colours_counted.connect(self._on_colours_counted)
        session.palettes.found.connect(self._on_colour_found)
        session.palettes.search_ended.connect(self.clear)
        self.swatches.colour_pressed.connect(self._on_colour_pressed)
        self.order.currentIndexChanged.connect(self._refresh)
        self.set_sprites(None)

    def set_sprites(self, sprites: Sprites | None) -> None:
        """Show no palette until the colours of these sprites are counted. Equal pixels keep their palette."""
        before, self._sprites = self._sprites, sprites
        if before is not None and sprites is not None and before.rgba is sprites.rgba:
            return
        self._use = None
        self._session.palettes.cancel_search()
        self._wanted = self.indices = None
        self._refresh()

    def save_state(self) -> None:
        self._session.settings.set_text("palette_order", self.order.currentData())

    @Slot()
    def clear(self) -> None:
        if self._wanted is not None:
            self._session.palettes.cancel_search()
            self._wanted = self.indices = None
            self._show_chosen("")
            self.chosen.emit()

    @Slot(object)
    def _on_colours_counted(self, counts: ColourCounts) -> None:
        self._use = counts
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        """Draw the swatches in the chosen order, and mark the chosen colour."""
        use = self._use
        colours: Rgba = use.colours if use else np.zeros((0, 4), np.uint8)
        self._order = display_order(colours) if self.order.currentData() == _BY_HUE else np.arange(len(colours))
        self.swatches.set_palette(colours[self._order], _use_texts(use, self._order) if use else ())
        total = f" ({number(use.total)}{'+' if use.step > 1 else ''})" if use else ""
        self._title.setText(f"Colours{total}")
        self._about.setText(_about(use) if use else "")
        self._about.setVisible(bool(self._about.text()))
        for widget in (self.save, self.copy, self.order):
            factory.set_enabled(widget, "" if len(colours) else "No colours yet.")
        self._show_chosen(self._status.text() if self._wanted is not None else "")

    def _show_chosen(self, text: str) -> None:
        self._status.setText(text)
        self._status.setVisible(bool(text))
        self.show_all.setVisible(bool(text))
        self.swatches.mark(next((n for n, colour in enumerate(self._palette()) if self._is_wanted(colour)), -1))

    def _is_wanted(self, colour: Rgba) -> bool:
        return self._wanted is not None and np.array_equal(colour, self._wanted)

    def _palette(self) -> Rgba:
        """Return the colours in swatch order: uint8 [K, 4]."""
        return self._use.colours[self._order] if self._use else np.zeros((0, 4), np.uint8)

    @Slot(int)
    def _on_colour_pressed(self, number: int) -> None:
        colour = self._palette()[number]
        if self._is_wanted(colour):
            self.clear()
        elif self._sprites is not None:
            self._wanted = colour
            self._show_chosen(f"Searching for {hex_code(colour)}…")
            self._session.palettes.find(self._sprites, colour)

    @Slot(object, object, object)
    def _on_colour_found(self, sprites: Sprites, colour: Rgba, indices: NDArray[np.int64]) -> None:
        if self._sprites is not None and sprites.rgba is self._sprites.rgba and self._is_wanted(colour):
            use = "uses" if len(indices) == 1 else "use"
            self._show_chosen(f"{count(len(indices), 'sprite')} {use} {hex_code(colour)}.")
            self.indices = indices
            self.chosen.emit()

    @Slot()
    def _on_save_clicked(self) -> None:
        assert self._sprites is not None
        path = dialogs.choose_save_palette(self, self._session.settings, f"{self._sprites.title}.gpl")
        if path is not None:
            self._session.palettes.save(path, Palette(self._palette(), self._sprites.title))

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText("\n".join(map(hex_code, self._palette())))


def _use_texts(use: ColourCounts, order: NDArray[np.int64]) -> list[str]:
    about = "about " if use.step > 1 else ""
    pairs = zip(use.pixels[order].tolist(), use.sprites[order].tolist(), strict=True)
    return [f"{about}{count(pixels, 'pixel')} in {about}{count(sprites, 'sprite')}" for pixels, sprites in pairs]


def _about(use: ColourCounts) -> str:
    """Return a note if colours are left out or counts are estimated; '' for exact counts of all colours."""
    parts = [f"the {len(use.colours)} most used"] if use.total > len(use.colours) else []
    parts += [f"estimated from 1 in {number(use.step)} sprites"] if use.step > 1 else []
    sentence = ", ".join(parts)
    return f"{sentence[:1].upper()}{sentence[1:]}." if parts else ""
