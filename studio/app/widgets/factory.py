"""Controls, texts and layouts as every page makes them: each control with its tool tip and its accessible name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QByteArray, QEvent, QMimeData, QObject, QSize, Qt, SignalInstance
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QBoxLayout,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLayout,
    QListWidgetItem,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from studio.app import theme

Box = TypeVar("Box", bound=QBoxLayout)

GRID = 8  # pixels; all distances are multiples of it, or its half


def button(text: str, tip: str, icon: str = "", role: theme.Role = "") -> QPushButton:
    """A push button. `tip` is one sentence."""
    made = QPushButton()
    if icon:
        made.setIcon(theme.icon(icon, "on_accent" if role == "primary" else ""))
        made.setIconSize(QSize(18, 18))
    if role:
        theme.set_role(made, role)
    set_name_and_tip(made, text, tip)
    set_button_text(made, text)
    return made


def set_button_text(made: QPushButton, text: str) -> None:
    """Change a button's text; beside an icon it begins a space further on, where Qt leaves too little."""
    made.setText(text if made.icon().isNull() else f" {text}")
    made.setAccessibleName(text)


def tool_button(icon: str, name: str, tip: str) -> QToolButton:
    """A button that is an icon only."""
    made = QToolButton()
    made.setIcon(theme.icon(icon))
    made.setIconSize(QSize(18, 18))
    set_name_and_tip(made, name, tip)
    return made


def combo(name: str, tip: str) -> QComboBox:
    """A combo box that long entries do not widen."""
    made = QComboBox()
    made.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    made.setMinimumContentsLength(20)
    set_name_and_tip(made, name, tip)
    return made


def pad_spin_box(box: QAbstractSpinBox) -> None:
    """Room before the number: Qt drops the left padding that a stylesheet gives a spin box."""
    box.lineEdit().setTextMargins(GRID, 0, 0, 0)


def set_name_and_tip(widget: QWidget, name: str, tip: str) -> None:
    """Give a control its accessible name and its tool tip."""
    widget.setAccessibleName(name)
    widget.setToolTip(tip)


def set_enabled(widget: QWidget, reason: str, tip: str) -> None:
    """Enable a control, or disable it with the reason as its tool tip."""
    widget.setEnabled(not reason)
    widget.setToolTip(reason or tip)


class FieldError(QLabel):
    """A red line under a field with the reason why its value is invalid; hidden for a valid value."""

    def __init__(self, field: QWidget, tip: str) -> None:
        """tip: the field's tool tip for a valid value."""
        super().__init__()
        self._field, self._tip = field, tip
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        theme.set_role(self, "error")
        self.hide()

    def show_reason(self, reason: str) -> None:
        """Mark the field and show the reason; an empty reason clears both."""
        self._field.setToolTip(reason or self._tip)
        self._field.setAccessibleDescription(reason)
        if bool(self._field.property("invalid")) != bool(reason):
            self._field.setProperty("invalid", bool(reason))
            self._field.style().polish(self._field)
        self.setText(reason)
        self.setVisible(bool(reason))


def text(words: str = "", role: theme.Role = "", *, wrap: bool = True) -> QLabel:
    """A plain text."""
    made = QLabel(words)
    made.setTextFormat(Qt.TextFormat.PlainText)  # names of files and classes may hold anything
    made.setWordWrap(wrap)
    if role:
        theme.set_role(made, role)
    return made


def title(words: str) -> QLabel:
    """The name of a page."""
    return text(words, "title", wrap=False)


def elided_title(words: str = "") -> ElidedLabel:
    """Return a page title that shortens a long name in the middle."""
    made = ElidedLabel("title", Qt.TextElideMode.ElideMiddle)
    made.show_text(words)
    return made


def heading(words: str) -> QLabel:
    """The name of a section."""
    return text(words, "heading", wrap=False)


def caption(words: str) -> QLabel:
    """A quiet line of explanation; it wraps."""
    return text(words, "muted")


def badge(words: str) -> QLabel:
    """A short fact on a quiet ground."""
    return text(words, "badge", wrap=False)


def labelled(label: str, widget: QWidget) -> QVBoxLayout:
    """A control under its label; the label's shortcut, if it has one, goes to the control."""
    above = text(label, "muted", wrap=False)
    above.setBuddy(widget)
    if not widget.accessibleName():
        widget.setAccessibleName(label.replace("&", ""))
    return column(above, widget, spacing=4)


def row(*items: QWidget | QLayout | int, spacing: int = GRID, margin: int = 0) -> QHBoxLayout:
    """Widgets side by side; a number is a stretch."""
    return _fill(QHBoxLayout(), items, spacing, margin)


def column(*items: QWidget | QLayout | int, spacing: int = GRID, margin: int = 0) -> QVBoxLayout:
    """Widgets one above the other; a number is a stretch."""
    return _fill(QVBoxLayout(), items, spacing, margin)


def panel(layout: QLayout) -> QWidget:
    """A widget with that layout."""
    made = QWidget()
    made.setLayout(layout)
    return made


class _ScrollArea(QScrollArea):
    """Qt scrolls below the least height of the content, but does not count what wraps into more lines there."""

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Other words, or more of them, take other room."""
        if watched is self.widget() and event.type() == QEvent.Type.LayoutRequest:
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        content = self.widget()
        layout = content.layout() if content is not None else None
        if content is not None and layout is not None:
            wraps = layout.hasHeightForWidth()  # no longer, when the only text that does was hidden
            content.setMinimumHeight(layout.minimumHeightForWidth(self.viewport().width()) if wraps else 0)


def scroll_area(content: QWidget) -> QScrollArea:
    """Let a part of a page scroll up and down where the window is low."""
    made = _ScrollArea()
    made.setWidgetResizable(True)
    made.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # Tab stops where something can be done
    made.setFrameShape(QScrollArea.Shape.NoFrame)
    made.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    made.setWidget(content)
    return made


def fill_splitter(
    splitter: QSplitter, parts: Iterable[QWidget], sizes: Sequence[int], layout: QByteArray, stretch: int = -1
) -> None:
    """Add parts to a splitter, with the sizes of a saved layout or, without one, with `sizes` in logical pixels.

    stretch: index of the part that takes the room when the window grows; -1 for all of them.
    """
    for part in parts:
        splitter.addWidget(part)
    splitter.setChildrenCollapsible(False)
    if stretch >= 0:
        splitter.setStretchFactor(stretch, 1)
    splitter.setSizes(sizes)
    splitter.restoreState(layout)


def list_heading(text: str) -> QListWidgetItem:
    """Return a bold list item that can't be selected."""
    item = QListWidgetItem(text)
    item.setFlags(Qt.ItemFlag.NoItemFlags)
    font = item.font()
    font.setBold(True)
    item.setFont(font)
    return item


def shortcut(
    key: str | QKeySequence.StandardKey,
    widget: QWidget,
    slot: Callable[[], object] | SignalInstance,
    context: Qt.ShortcutContext = Qt.ShortcutContext.WidgetWithChildrenShortcut,
) -> None:
    """Call `slot` for a key press while `widget`, or by default one of its children, has the focus."""
    made = QShortcut(QKeySequence(key), widget)
    made.setContext(context)
    made.activated.connect(slot)


def local_paths(data: QMimeData) -> list[Path]:
    """Return the local files and folders in a drop or in the clipboard."""
    return [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]


def retain_size_when_hidden(widget: QWidget) -> None:
    """Keep a hidden widget's place, so that nothing jumps when it appears."""
    policy: QSizePolicy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)


class _WheelFilter(QObject):
    """The wheel scrolls the page; it changes a control only where the user has gone."""

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus():
            event.ignore()
            return True
        return super().eventFilter(watched, event)


def need_focus_for_wheel(widget: QWidget) -> None:
    """Let the wheel over a control scroll what it is in, unless the user has gone to the control."""
    widget.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # not WheelFocus
    widget.installEventFilter(_WheelFilter(widget))


class ElidedLabel(QLabel):
    """A line that changes often: nothing beside it moves with its length.

    A text that doesn't fit is shortened, and its tool tip shows the whole text. elide: where the ellipsis goes.
    """

    def __init__(self, role: theme.Role = "", elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
        super().__init__()
        self._whole, self._tip, self._elide = "", "", elide
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        theme.set_role(self, role)

    def show_text(self, text: str, tip: str = "") -> None:
        """Show this from now on; the tool tip says more of it."""
        self._whole, self._tip = text, tip
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show as much as there is room for."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        text = self.fontMetrics().elidedText(self._whole, self._elide, self.width())
        if text != self.text():
            self.setText(text)
        self.setToolTip("\n".join(part for part in (self._whole if text != self._whole else "", self._tip) if part))


def _fill(layout: Box, items: tuple[QWidget | QLayout | int, ...], spacing: int, margin: int) -> Box:
    layout.setSpacing(spacing)
    layout.setContentsMargins(margin, margin, margin, margin)
    for item in items:
        if isinstance(item, QWidget):
            layout.addWidget(item)
        elif isinstance(item, QLayout):
            layout.addLayout(item)
        else:
            layout.addStretch(item)
    return layout
