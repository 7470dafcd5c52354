"""The choice of a tile set on the Generate page: its kind and its terrains."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import cast

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QSpinBox, QWidget

from studio.app.pages.generate.given_tiles import GivenTilesDialog
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.input import WheelNeedsFocus
from studio.app.widgets.lasting_choice import LastingChoice
from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.core.pictures import are_filled
from studio.data.colour.constraints import NONE
from studio.data.tiles.layout import MOST_TERRAINS, MOST_VARIANTS, TRANSPARENT, TileSetSpec
from studio.data.tiles.tile_set import TileKind
from studio.engine.sampling.class_choice import names_text, read_names
from studio.engine.sampling.settings import GenerateSettings

_KINDS = (
    ("None", NONE), ("Corner tiles", "corner"), ("Blob tiles", "blob"), ("Dual-grid tiles", "dual-grid"),
)  # fmt: skip
_TIP = "Draw the tiles between terrains; their borders fit together."
_ABOUT = {
    "corner": "Two terrains give 16 tiles, three 81, four 256. A game picks each tile by the terrains at its corners.",
    "blob": "47 tiles of a terrain on a ground, and the ground. A game picks each tile by its eight neighbours.",
    "dual-grid": "Corner tiles for a grid shifted by half a tile: two terrains give 16 tiles, three 81, four 256.",
}
_VARIANTS_TIP = "Draw this many tiles for each place. A map takes each equally often."
_GIVE_TIP = "Give tiles of your own: the studio keeps them and draws the missing ones."
_TERRAIN_TIP = "Choose a class of the model, or Transparent for an empty area."
_FEWEST = 2


class TileChoice(QWidget):
    """A kind of tile set, and a class for each terrain. changed: the user chose another kind or terrain."""

    changed = Signal()

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session, self._size = session, 0  # of the model's sprites in pixels
        self.kinds = factory.combo("Tile set", _TIP)
        factory.fill_combo(self.kinds, _KINDS, NONE)
        self.terrains = [factory.combo(f"Terrain {number}", _TERRAIN_TIP) for number in range(1, MOST_TERRAINS + 1)]
        self._about = factory.caption("")
        self._labels = [factory.caption("") for _ in self.terrains]
        self._choices = [LastingChoice(box) for box in self.terrains]
        lines = [factory.column(*line, spacing=2) for line in zip(self._labels, self.terrains, strict=True)]
        self._boxes = [factory.panel(line) for line in lines]
        self.variants = QSpinBox()
        self.variants.setRange(1, MOST_VARIANTS)
        factory.pad_spin_box(self.variants)
        factory.set_name_and_tip(self.variants, "Variants", _VARIANTS_TIP)
        self.give = factory.button("Give tiles…", _GIVE_TIP, slot=self._on_give_clicked)
        self._given_text = factory.caption("")
        variants = factory.labelled("Variants", self.variants)
        self._more = factory.panel(factory.column(variants, factory.row(self.give, 1), self._given_text, spacing=4))
        kinds = factory.labelled("Tile set", self.kinds)
        self.setLayout(factory.column(kinds, self._about, *self._boxes, self._more, spacing=4))
        for box in (self.kinds, *self.terrains):
            WheelNeedsFocus(box)
            box.currentIndexChanged.connect(self._on_changed)
        WheelNeedsFocus(self.variants)
        self.variants.valueChanged.connect(self._on_changed)
        session.given_tiles.changed.connect(self._on_changed)
        self._refresh()

    def kind(self) -> str:
        """Return the chosen kind; 'none' for single sprites, and while the model can't draw tile sets."""
        return NONE if self.isHidden() else str(self.kinds.currentData())

    def chosen_terrains(self) -> list[str]:
        """Return the chosen terrains: class names or 'transparent'."""
        shown = self.terrains[:_FEWEST] if self.kind() == "blob" else self.terrains
        return [name for box in shown if (name := box.currentData())]

    def problem(self) -> str:
        """Return why the terrains form no tile set; '' if they do, or for single sprites."""
        try:
            self._spec()
        except UsageError as error:
            return error.title
        return ""

    def _spec(self) -> TileSetSpec | None:
        """Return the chosen tile set; None for single sprites. Raises UsageError for terrains that form no set."""
        if self.kind() == NONE:
            return None
        return TileSetSpec(cast(TileKind, self.kind()), tuple(self.chosen_terrains()), self.variants.value())

    def given(self) -> Rgba | None:
        """Return the given tiles of the chosen set, uint8 [N, S, S, 4]; None without given tiles."""
        spec = None if self.problem() else self._spec()
        return None if spec is None else self._session.given_tiles.of(spec, self._size)

    def count_text(self) -> str:
        """Return why the number of sprites is fixed; '' for single sprites."""
        spec = None if self.problem() else self._spec()
        return "" if spec is None else f"This tile set has {spec.tile_count:,} tiles."

    def show_classes(self, names: Sequence[str], size: int) -> None:
        """Offer classes, if any; keep the chosen terrains if possible. size: side of the model's sprites in pixels."""
        self._size = size
        if not names:
            return
        items = [*zip(names, names, strict=True), ("Transparent", TRANSPARENT)]
        usual = [*names[:_FEWEST], TRANSPARENT, TRANSPARENT]
        for number, choice in enumerate(self._choices):
            first = [("None", "")] if number >= _FEWEST else []
            choice.fill([*first, *items], "" if first else usual[number])
        self._refresh()

    def apply_to(self, settings: GenerateSettings) -> GenerateSettings:
        """Return settings with the chosen kind and terrains."""
        if self.kind() == NONE:
            return settings.replace(tiles=NONE, terrains="", variants=1)
        terrains, variants = names_text(self.chosen_terrains()), self.variants.value()
        return settings.replace(tiles=self.kind(), terrains=terrains, variants=variants, mix="", best_of=1)

    def restore(self, settings: GenerateSettings) -> None:
        """Show the kind and the terrains of earlier settings."""
        try:
            wanted = read_names(settings.terrains)
        except UsageError:
            wanted = []
        for choice, name in itertools.zip_longest(self._choices, wanted[:MOST_TERRAINS]):
            choice.wanted = name
        self.kinds.setCurrentIndex(max(0, self.kinds.findData(settings.tiles)))
        if self.terrains[0].count():
            names = [name for name in _names_in(self.terrains[0]) if name != TRANSPARENT]
            self.show_classes(names, self._size)
        self.variants.setValue(settings.variants)

    @Slot()
    def _on_changed(self) -> None:
        self._refresh()
        self.changed.emit()

    @Slot()
    def _on_give_clicked(self) -> None:
        try:
            spec = self._spec()
            if spec is not None:
                GivenTilesDialog(self, self._session, spec, self._size).open()
        except UsageError as error:
            self._session.show_error(error)

    def _refresh(self) -> None:
        kind, given = self.kinds.currentData(), self.given()
        self._more.setVisible(kind in _ABOUT)
        total = 0 if given is None else len(given)
        count = 0 if given is None else int(are_filled(given).sum())
        self._given_text.setText(f"{count:,} of {total:,} tiles given." if count else "")
        self._given_text.setVisible(bool(count))
        factory.set_enabled(self.give, self.problem())
        self._about.setText(_ABOUT.get(kind, ""))
        self._about.setVisible(kind in _ABOUT)
        for number, (box, label) in enumerate(zip(self._boxes, self._labels, strict=True)):
            is_blob = kind == "blob" and number < _FEWEST
            label.setText(("Terrain", "Ground")[number] if is_blob else f"Terrain {number + 1}")
            box.setVisible(is_blob or kind in ("corner", "dual-grid"))


def _names_in(box: QComboBox) -> list[str]:
    return [str(box.itemData(index)) for index in range(box.count())]
