"""Plays the frames of an animation, with speed and onion skin."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QEvent, QObject, QSignalBlocker, QSize, Qt, QTimer, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QBoxLayout, QSizePolicy, QSlider, QSpinBox, QWidget

from studio.app import theme
from studio.app.widgets import factory
from studio.app.widgets.input import WheelNeedsFocus
from studio.app.widgets.sprites.painting import as_image, checkerboard, fit_sprite
from studio.core.arrays import Rgba

_SPEEDS = range(1, 51)  # frames per second; a GIF has no shorter frames than 20 ms
_USUAL_SPEED = 10
_BEFORE, _AFTER = 0.5, 0.3  # opacity of the onion skins: the frames before and after the shown frame
_SIDE, _LOWEST = 136, 64  # logical pixels of the frame
_ONION = "Onion skin: show the frames before and after the current frame."


class FrameView(QWidget):
    """Draws a frame at the largest whole zoom, over its onion skins."""

    def __init__(self) -> None:
        super().__init__()
        self._frame: Rgba | None = None
        self._skins: list[tuple[Rgba, float]] = []
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        factory.set_name_and_tip(self, "Animation", "The current frame of the animation.")

    def show_frame(self, frame: Rgba, *skins: tuple[Rgba, float]) -> None:
        """Show uint8 [H, W, 4]. skins: frames to draw below, with their opacity."""
        self._frame, self._skins = frame, list(skins)
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(_SIDE, _SIDE)

    def minimumSizeHint(self) -> QSize:
        return QSize(_LOWEST, _LOWEST)

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._frame is None:
            return
        ratio = self.devicePixelRatioF()
        target, _ = fit_sprite(self.rect(), ratio, self._frame)
        with QPainter(self) as painter:
            painter.scale(1 / ratio, 1 / ratio)
            painter.setBrushOrigin(target.topLeft())
            painter.fillRect(target, checkerboard(ratio))
            for frame, opacity in (*self._skins, (self._frame, 1.0)):
                _, pixels = fit_sprite(self.rect(), ratio, frame)
                painter.setOpacity(opacity)
                painter.drawImage(target, as_image(pixels))


class Playback(QObject):
    """A play button and a speed field that step a slider through its range in a loop, while the slider is visible."""

    def __init__(self, slider: QSlider, what: str) -> None:
        """Create the controls. what: name of the played thing, for tooltips."""
        super().__init__(slider)
        self._slider, self._what, self._is_playing = slider, what, False
        self.play = factory.tool_button("play", "Play", f"Play the {what}.", self._on_play_clicked)
        self.speed = QSpinBox()
        self.speed.setRange(_SPEEDS[0], _SPEEDS[-1])
        self.speed.setValue(_USUAL_SPEED)
        self.speed.setSuffix(" fps")
        factory.pad_spin_box(self.speed)
        WheelNeedsFocus(self.speed)
        factory.set_name_and_tip(self.speed, "Speed", "Speed in frames per second.")
        self._timer = QTimer(self, interval=self.duration_ms())
        self._timer.timeout.connect(self._on_timeout)
        self.speed.valueChanged.connect(self._on_speed_changed)
        slider.sliderPressed.connect(self.pause)
        slider.rangeChanged.connect(self.refresh)
        slider.installEventFilter(self)
        self.refresh()

    def duration_ms(self) -> int:
        """Return the duration of a frame at the chosen speed."""
        return round(1000 / self.speed.value())

    def is_playing(self) -> bool:
        return self._is_playing

    @Slot()
    def start(self) -> None:
        """Play, if there are several frames."""
        self._is_playing = self._slider.maximum() > 0
        self.refresh()

    @Slot()
    def pause(self) -> None:
        """Stop at the shown frame."""
        self._is_playing = False
        self.refresh()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Rest while the slider is hidden."""
        if event.type() in (QEvent.Type.Show, QEvent.Type.Hide):
            self.refresh()
        return super().eventFilter(watched, event)

    @Slot()
    def refresh(self) -> None:
        """Enable the button if there are several frames, and start or stop the timer."""
        has_frames = self._slider.maximum() > 0
        self._is_playing = self._is_playing and has_frames
        if not self._is_playing or not self._slider.isVisible():
            self._timer.stop()
        elif not self._timer.isActive():
            self._timer.start()
        name = "Pause" if self._is_playing else "Play"
        self.play.setIcon(theme.icon(name.lower()))
        self.play.setAccessibleName(name)
        factory.set_enabled(self.play, "" if has_frames else "Too few frames to play.", f"{name} the {self._what}.")

    @Slot()
    def _on_play_clicked(self) -> None:
        if self._is_playing:
            self.pause()
        else:
            self.start()

    @Slot()
    def _on_timeout(self) -> None:
        self._slider.setValue((self._slider.value() + 1) % (self._slider.maximum() + 1))

    @Slot()
    def _on_speed_changed(self) -> None:
        self._timer.setInterval(self.duration_ms())


class Player(QWidget):
    """Plays frames in a loop while it is visible. The slider's keys step through the frames."""

    def __init__(self) -> None:
        super().__init__()
        self._frames: Rgba = np.zeros((0, 1, 1, 4), np.uint8)
        self.view = FrameView()
        self.slider = QSlider(Qt.Orientation.Horizontal)
        self.slider.setRange(0, 0)
        factory.set_name_and_tip(self.slider, "Frame", "Drag to a frame, or use the arrow keys.")
        self.playback = Playback(self.slider, "animation")
        tip = "Speed in frames per second. Saved animations play at this speed."
        factory.set_name_and_tip(self.playback.speed, "Speed", tip)
        self.onion = factory.tool_button("onion", "Onion skin", _ONION)
        self.onion.setCheckable(True)
        self._position = factory.text("", "muted", wrap=False)
        controls = (
            factory.row(self.playback.play, self.slider, grows=1),
            factory.row(self.playback.speed, self.onion, 1),
        )
        below = factory.panel(factory.column(*controls, self._position, 1, spacing=4))
        self._box = QBoxLayout(QBoxLayout.Direction.TopToBottom)
        self._box.setContentsMargins(0, 0, 0, 0)
        self._box.addWidget(self.view, 1)
        self._box.addWidget(below)
        self.setLayout(self._box)
        self.slider.valueChanged.connect(self._show)
        self.onion.toggled.connect(self._show)

    def show_frames(self, frames: Rgba) -> None:
        """Play uint8 [N, H, W, 4] from the first frame, unless these frames are already shown."""
        if np.array_equal(frames, self._frames):
            return
        self._frames = frames
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, max(0, len(frames) - 1))
            self.slider.setValue(0)
        self.playback.start()
        self._show()

    def frame(self) -> int:
        """Return the index of the shown frame."""
        return self.slider.value()

    def set_direction(self, direction: QBoxLayout.Direction) -> None:
        """Place the controls below the frame (TopToBottom) or beside it (LeftToRight)."""
        self._box.setDirection(direction)

    @Slot()
    def _show(self) -> None:
        count = len(self._frames)
        if count:
            index = self.slider.value()
            around = ((self._frames[index - 1], _BEFORE), (self._frames[(index + 1) % count], _AFTER))
            self.view.show_frame(self._frames[index], *(around if self.onion.isChecked() else ()))
            self._position.setText(f"Frame {index + 1} of {count}")
