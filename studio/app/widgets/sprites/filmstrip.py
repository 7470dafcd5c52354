"""Live samples with their history."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np
from PySide6.QtCore import QPoint, QRect, QSignalBlocker, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QSlider, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.input import PlaceTips
from studio.app.widgets.sprites.painting import draw_sprite, factor_for
from studio.core.arrays import Rgba
from studio.core.events import SamplesReady

_Frame = tuple[int, Rgba, tuple[str, ...]]
_ROOM_BYTES = 96 << 20  # a night's samples would take 1 GB, so long films are thinned
SPRITE_GAP = 6  # logical pixels between sprites


class Filmstrip(QWidget):
    """A training's samples of a fixed seed, with a slider for earlier steps. save_requested: save an animation."""

    save_requested = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.view = SpriteSheetView()
        self._film: list[_Frame] = []
        self._live = True
        self._held: int | None = None  # the shown step before `peek`; -1 for live
        self._slider = QSlider(Qt.Orientation.Horizontal)
        factory.set_name_and_tip(self._slider, "Sample step", "Drag to see earlier samples of the same seed.")
        self._step = factory.text("–", "muted", wrap=False)
        self._step.setMinimumWidth(self.fontMetrics().horizontalAdvance("Step 000,000"))
        self._latest = factory.button("Latest", "Show the newest samples and follow new ones.", role="flat")
        tip = "Save the samples as a GIF or APNG animation."
        self.save = factory.tool_button("film", "Save timelapse", tip, self.save_requested)
        below = factory.row(self._step, self._slider, self._latest, self.save, grows=1)
        self.setLayout(factory.column(self.view, below, grows=0))
        self._slider.valueChanged.connect(self._on_slider_moved)
        self._latest.clicked.connect(self.go_live)
        self._refresh()

    def add(self, step: int, sprites: Rgba, captions: Sequence[str] = ()) -> None:
        """Append the samples of `step`, replacing samples from this step on. Show the new samples if live."""
        shown = self.shown_step()
        del self._film[bisect.bisect_left(self.steps(), step) :]  # a resumed run draws them again
        self._film.append((step, sprites, tuple(captions)))
        self._film = thinned(self._film, _ROOM_BYTES)
        self._fit_slider()
        self._show_again(shown)

    def show_film(self, film: Sequence[SamplesReady]) -> None:
        """Show a run's samples, or newer samples of the same run; keep the shown step."""
        shown = self.shown_step()
        self._film = thinned([(frame.step, frame.sprites, frame.captions) for frame in film], _ROOM_BYTES)
        self._fit_slider()
        if self._film:
            self._show_again(shown)
        else:
            self.clear()

    def clear(self) -> None:
        """Remove all samples, for a new run."""
        self._film, self._live, self._held = [], True, None
        self._fit_slider()
        self.view.set_sprites(np.zeros((0, 1, 1, 4), np.uint8))
        self._refresh()

    @Slot(int)
    def peek(self, step: int) -> None:
        """Show the newest samples up to `step` temporarily, while the loss curve is hovered."""
        if self._held is None:
            self._held = -1 if self._live else self.shown_step()
        self.show_step(step)

    @Slot()
    def end_peek(self) -> None:
        """Show the samples that were shown before `peek` again."""
        held, self._held = self._held, None
        if held == -1:
            self.go_live()
        elif held is not None:
            self.show_step(held)

    def show_step(self, step: int) -> None:
        """Show the newest samples up to `step`."""
        if self._film:
            self._live = False
            self._show(max(0, bisect.bisect_right(self.steps(), step) - 1))

    @Slot()
    def go_live(self) -> None:
        """Show the newest samples and follow new samples."""
        self._live = True
        if self._film:
            self._show(len(self._film) - 1)
        self._refresh()

    def is_live(self) -> bool:
        """Return whether new samples are shown at once."""
        return self._live

    def steps(self) -> list[int]:
        return [step for step, _, _ in self._film]

    def shown_step(self) -> int:
        """Return the shown step; -1 without samples."""
        return self._film[self._slider.value()][0] if self._film else -1

    def sprites_at(self, step: int) -> Rgba | None:
        """Return the newest samples up to `step`, uint8 [N, S, S, 4]; None without samples."""
        index = bisect.bisect_right(self.steps(), step) - 1
        return self._film[index][1] if index >= 0 else None

    def _show_again(self, step: int) -> None:
        """Show the newest samples if live, or else this step, which may be removed, moved or replaced."""
        if self._live:
            self._show(len(self._film) - 1)
        else:
            self.show_step(step)

    @Slot(int)
    def _on_slider_moved(self, index: int) -> None:
        self._live = index == len(self._film) - 1
        self._show(index)

    def _show(self, index: int) -> None:
        _, sprites, captions = self._film[index]
        with QSignalBlocker(self._slider):
            self._slider.setValue(index)
        self.view.set_sprites(sprites, captions)
        self._refresh()

    def _fit_slider(self) -> None:
        with QSignalBlocker(self._slider):
            self._slider.setRange(0, max(0, len(self._film) - 1))

    def _refresh(self) -> None:
        step = self.shown_step()
        self._step.setText(f"Step {step:,}" if step >= 0 else "–")
        self._slider.setEnabled(len(self._film) > 1)
        self._latest.setEnabled(not self._live)
        factory.set_enabled(self.save, self._why_no_film())

    def _why_no_film(self) -> str:
        """Return why no timelapse can be saved; '' if possible."""
        if len(self._film) < 2:
            return "Too few samples for a timelapse."
        first = self._film[0][1]
        is_still = all(np.array_equal(first, sprites) for _, sprites, _ in reversed(self._film[1:]))
        return "Only the predictions change, not the sprites." if is_still else ""


def thinned(film: list[_Frame], room_bytes: int) -> list[_Frame]:
    """Return `film`, with every other frame removed repeatedly until it fits the room. First and last frame stay."""
    while len(film) > 2 and sum(sprites.nbytes for _, sprites, _ in film) > room_bytes:
        film = [*film[:-1:2], film[-1]] if len(film) > 3 else [film[0], film[-1]]
    return film


class SpriteSheetView(QWidget):
    """Up to some hundred sprites in a grid that fills the widget at the largest whole zoom. Cheap to update."""

    def __init__(self) -> None:
        super().__init__()
        self._rgba: Rgba = np.zeros((0, 1, 1, 4), np.uint8)
        self._captions: tuple[str, ...] = ()
        self._placeholder = ""
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Samples")
        PlaceTips(self, self._tip_at)

    def sizeHint(self) -> QSize:
        """Return room for two rows of eight 32-pixel sprites at double size."""
        return QSize(8 * 70, 2 * 70 + 20)

    def minimumSizeHint(self) -> QSize:
        """Return room for the sprites at actual size."""
        return QSize(8 * 34, 2 * 34)

    def set_sprites(self, rgba: Rgba, captions: Sequence[str] = ()) -> None:
        """Show `rgba` uint8 [N, S, S, 4] with captions below; an empty array clears the view."""
        self._rgba, self._captions = rgba, tuple(captions)
        self.setAccessibleDescription(", ".join(self._captions) or f"{len(rgba)} sprites")
        self.update()

    def set_placeholder(self, text: str) -> None:
        """Set the text shown without sprites."""
        self._placeholder = text
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(QColor(theme.colours().muted))
        if not len(self._rgba):
            flags = Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap
            painter.drawText(self.rect().adjusted(16, 16, -16, -16), flags, self._placeholder)
            return
        height = painter.fontMetrics().height() if self._captions else 0  # of a caption
        for number, box in enumerate(self._boxes()):
            draw_sprite(painter, box.adjusted(0, 0, 0, -height), self._rgba[number])
            if self._captions:
                line = QRect(box.x() - 2, box.bottom() + 1 - height, box.width() + 4, height)
                caption, middle = self._captions[number], Qt.TextElideMode.ElideMiddle
                text = painter.fontMetrics().elidedText(caption, middle, line.width())
                painter.drawText(line, Qt.AlignmentFlag.AlignCenter, text)

    def _tip_at(self, point: QPoint) -> str:
        """Return the full caption at a point, since the shown caption may be elided."""
        boxes = self._boxes() if self._captions else []
        return next((self._captions[number] for number, box in enumerate(boxes) if box.contains(point)), "")

    def _boxes(self) -> list[QRect]:
        """Return each sprite's rectangle with caption. Chooses the columns with the largest sprites and fewest gaps.

        The rectangles are wider than their sprites if there is room for longer captions.
        """
        (count, size), gap, metrics = self._rgba.shape[:2], SPRITE_GAP, self.fontMetrics()
        text = metrics.height() if self._captions else 0
        ratio, best, columns = self.devicePixelRatioF(), (0.0, 0), max(1, self.width() // (size + gap))
        for candidate in range(1, count + 1):
            across = self.width() // candidate - gap
            down = self.height() // math.ceil(count / candidate) - gap - text
            side = factor_for(min(across, down), size, ratio)
            empty = -count % candidate
            if side <= min(across, down) and (side, -empty) > best:
                best, columns = (side, -empty), candidate
        side, rows = math.ceil(best[0] or size), math.ceil(count / columns)
        longest = max(map(metrics.horizontalAdvance, self._captions), default=0)
        wide = max(side, min(longest, self.width() // columns - gap))
        left = max(0, (self.width() - columns * (wide + gap) + gap) // 2)
        top = max(0, (self.height() - rows * (side + gap + text) + gap) // 2)
        cells = (divmod(number, columns) for number in range(count))
        corners = ((left + column * (wide + gap), top + row * (side + gap + text)) for row, column in cells)
        return [QRect(*corner, wide, side + text) for corner in corners]
