"""The zoom of a sprite grid, and a slider for it as in file managers."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, QSignalBlocker, Qt, Signal, Slot
from PySide6.QtWidgets import QSlider, QWidget

from studio.app.widgets import factory

_ZOOMS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16)
_SMALLEST, _LARGEST = 16, 512  # sides of a thumbnail in logical pixels, unless the sprite itself is smaller or larger
_NARROWEST, _WIDEST = 40, 96  # slider, logical pixels


class GridZoom(QObject):
    """The zoom of a grid: whole numbers, or halves of halves for large sprites.

    thumbnail: the side in logical pixels that the user wants, which decides the zoom of later sprites of another size.
    value: logical pixels for a sprite pixel. changed: the value, or the choices.
    """

    changed = Signal()

    def __init__(self, parent: QObject, thumbnail: int) -> None:
        super().__init__(parent)
        self.thumbnail = thumbnail
        self.value = 1.0
        self._size = 0  # of the sprites, in pixels; 0 without sprites

    def choices(self) -> Sequence[float]:
        """Return the possible values for sprites of this size, ascending."""
        if not self._size:
            return (1.0,)
        smallest, largest = min(1.0, _SMALLEST / self._size), max(1.0, _LARGEST / self._size)
        return [zoom for zoom in _ZOOMS if smallest <= zoom <= largest]

    def set_size(self, size: int) -> None:
        """Choose the zoom for sprites of this size in pixels; 0 without sprites."""
        self._size = size
        self.set_thumbnail(self.thumbnail)

    def set_thumbnail(self, side: int) -> None:
        """Choose the largest zoom with thumbnails of at most `side` logical pixels."""
        self.thumbnail = side
        fitting = [zoom for zoom in self.choices() if self._size * zoom <= side]
        self._show(fitting[-1] if fitting else self.choices()[0])

    def set(self, value: float) -> None:
        """Choose the possible zoom nearest to a value, which decides the size of later thumbnails too."""
        if self._size:
            value = min(self.choices(), key=lambda possible: abs(possible - value))
            self.thumbnail = round(value * self._size)
            self._show(value)

    @Slot()
    def zoom_in(self) -> None:
        self.step(1)

    @Slot()
    def zoom_out(self) -> None:
        self.step(-1)

    @Slot(int)
    def step(self, steps: int) -> None:
        """Zoom in by this many choices; a negative number zooms out."""
        choices = self.choices()
        self.set(choices[min(max(choices.index(self.value) + steps, 0), len(choices) - 1)])

    def _show(self, value: float) -> None:
        self.value = value
        self.changed.emit()


class ZoomSlider(QWidget):
    """A slider between two buttons that zooms a sprite grid. Where room is scarce, the slider gets shorter."""

    def __init__(self, zoom: GridZoom) -> None:
        super().__init__()
        self._zoom = zoom
        self.smaller = factory.tool_button("zoom-out", "Smaller", "Show smaller sprites. (Ctrl+-)", zoom.zoom_out)
        self.larger = factory.tool_button("zoom-in", "Larger", "Show larger sprites. (Ctrl++)", zoom.zoom_in)
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setMinimumWidth(_NARROWEST)
        self.slider.setMaximumWidth(_WIDEST)
        self.slider.setPageStep(1)
        factory.set_name_and_tip(self.slider, "Zoom", "")
        self.setLayout(factory.row(self.smaller, self.slider, self.larger, spacing=factory.GRID // 2))
        self.slider.valueChanged.connect(self._on_moved)
        zoom.changed.connect(self._refresh)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        """Show the grid's zoom."""
        choices, value = self._zoom.choices(), self._zoom.value
        at = choices.index(value)
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, len(choices) - 1)
            self.slider.setValue(at)
        self.slider.setToolTip(f"Zoom: {value:.4g}x. Drag, or turn the wheel over the sprites with Ctrl.")
        factory.set_enabled(self.smaller, "" if at else "This is the smallest zoom.")
        factory.set_enabled(self.larger, "" if at < len(choices) - 1 else "This is the largest zoom.")

    @Slot(int)
    def _on_moved(self, value: int) -> None:
        self._zoom.set(self._zoom.choices()[value])
