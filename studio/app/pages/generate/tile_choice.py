"""The choice of a tile set on the Generate page: its kind and its terrains."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QComboBox, QWidget

from studio.app.widgets import factory
from studio.core.errors import UsageError
from studio.data.colour.constraints import NONE
from studio.data.tiles.layout import MOST_TERRAINS, TRANSPARENT, TileSetSpec
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
_TERRAIN_TIP = "Choose a class of the model, or Transparent for an empty area."
_FEWEST = 2


class TileChoice(QWidget):
    """A kind of tile set, and a class for each terrain. changed: the user chose another kind or terrain."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.kinds = factory.combo("Tile set", _TIP)
        factory.fill_combo(self.kinds, _KINDS, NONE)
        self.terrains = [factory.combo(f"Terrain {number}", _TERRAIN_TIP) for number in range(1, MOST_TERRAINS + 1)]
        self._about = factory.caption("")
        self._labels = [factory.caption("") for _ in self.terrains]
        self._wanted: Sequence[str] = ()  # the remembered terrains, until the classes are known
        lines = [factory.column(*line, spacing=2) for line in zip(self._labels, self.terrains, strict=True)]
        self._boxes = [factory.panel(line) for line in lines]
        self.setLayout(factory.column(factory.labelled("Tile set", self.kinds), self._about, *self._boxes, spacing=4))
        for box in (self.kinds, *self.terrains):
            factory.need_focus_for_wheel(box)
            box.currentIndexChanged.connect(self._on_changed)
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
            if self.kind() != NONE:
                TileSetSpec(self.kind(), tuple(self.chosen_terrains()))  # type: ignore[arg-type]
        except UsageError as error:
            return error.title
        return ""

    def count_text(self) -> str:
        """Return why the number of sprites is fixed; '' for single sprites."""
        if self.kind() == NONE:
            return ""
        count = 48 if self.kind() == "blob" else len(self.chosen_terrains()) ** 4
        return f"This tile set has {count:,} tiles."

    def show_classes(self, names: Sequence[str]) -> None:
        """Offer classes, if any; keep the chosen terrains if possible."""
        if not names:
            return
        before = self._wanted or [str(box.currentData() or "") for box in self.terrains]
        self._wanted = ()
        items = [*zip(names, names, strict=True), ("Transparent", TRANSPARENT)]
        usual = [*names[:_FEWEST], TRANSPARENT, TRANSPARENT]
        for number, box in enumerate(self.terrains):
            first = [("None", "")] if number >= _FEWEST else []
            known = {name for _, name in (*first, *items)}
            chosen = before[number] if number < len(before) and before[number] in known else ""
            factory.fill_combo(box, [*first, *items], chosen or ("" if first else usual[number]))
        self._refresh()

    def apply_to(self, settings: GenerateSettings) -> GenerateSettings:
        """Return settings with the chosen kind and terrains."""
        if self.kind() == NONE:
            return settings.replace(tiles=NONE, terrains="")
        return settings.replace(tiles=self.kind(), terrains=names_text(self.chosen_terrains()), mix="", best_of=1)

    def restore(self, settings: GenerateSettings) -> None:
        """Show the kind and the terrains of earlier settings."""
        try:
            self._wanted = read_names(settings.terrains)
        except UsageError:
            self._wanted = ()
        self.kinds.setCurrentIndex(max(0, self.kinds.findData(settings.tiles)))
        if self.terrains[0].count():
            self.show_classes([name for name in _names_in(self.terrains[0]) if name != TRANSPARENT])

    @Slot()
    def _on_changed(self) -> None:
        self._refresh()
        self.changed.emit()

    def _refresh(self) -> None:
        kind = self.kinds.currentData()
        self._about.setText(_ABOUT.get(kind, ""))
        self._about.setVisible(kind in _ABOUT)
        for number, (box, label) in enumerate(zip(self._boxes, self._labels, strict=True)):
            is_blob = kind == "blob" and number < _FEWEST
            label.setText(("Terrain", "Ground")[number] if is_blob else f"Terrain {number + 1}")
            box.setVisible(is_blob or kind in ("corner", "dual-grid"))


def _names_in(box: QComboBox) -> list[str]:
    return [str(box.itemData(index)) for index in range(box.count())]
