"""A slider for the zoom of a sprite grid, as in file managers."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import QSlider, QWidget

from studio.app.widgets import factory
from studio.app.widgets.sprites.grid import SpriteGrid

_WIDTH = 96  # logical pixels


class ZoomSlider(QWidget):
    """A slider between two buttons that zooms a sprite grid."""

    def __init__(self, grid: SpriteGrid) -> None:
        super().__init__()
        self._grid = grid
        self.smaller = factory.tool_button("zoom-out", "Smaller", "Show smaller sprites. (Ctrl+-)", grid.zoom_out)
        self.larger = factory.tool_button("zoom-in", "Larger", "Show larger sprites. (Ctrl++)", grid.zoom_in)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setFixedWidth(_WIDTH)
        self.slider.setPageStep(1)
        factory.set_name_and_tip(self.slider, "Zoom", "")
        self.setLayout(factory.row(self.smaller, self.slider, self.larger, spacing=factory.GRID // 2))
        self.slider.valueChanged.connect(self._on_moved)
        grid.zoom_changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        """Show the grid's zoom."""
        zooms, zoom = self._grid.zooms(), self._grid.zoom()
        at = zooms.index(zoom) if zoom in zooms else 0
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, len(zooms) - 1)
            self.slider.setValue(at)
        self.slider.setToolTip(f"Zoom: {zoom:.4g}x. Drag, or turn the wheel over the sprites with Ctrl.")
        factory.set_enabled(self.smaller, "" if at else "This is the smallest zoom.")
        factory.set_enabled(self.larger, "" if at < len(zooms) - 1 else "This is the largest zoom.")

    @Slot(int)
    def _on_moved(self, value: int) -> None:
        self._grid.set_zoom(self._grid.zooms()[value])
