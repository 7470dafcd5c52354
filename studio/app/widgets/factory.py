"""Makes labels, buttons and layouts in one style, with tooltips and accessible names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from PySide6.QtCore import QByteArray, QSignalBlocker, QSize, Qt, SignalInstance, Slot
from PySide6.QtGui import QFont, QFontDatabase, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QBoxLayout,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QLabel,
    QLayout,
    QListWidgetItem,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSlider,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from studio.app import keys, theme
from studio.app.widgets.combo_box import ComboBox
from studio.app.widgets.wrapping import ScrollArea
from studio.core.events import Progress

Box = TypeVar("Box", bound=QBoxLayout)
Action = Callable[[], object] | SignalInstance
Item = QWidget | QLayout | int
Margins = tuple[int, int, int, int]

GRID = 8  # logical pixels; all distances are multiples of GRID or GRID / 2
LEAST_PLOT = 140  # logical pixels; least height of curves with their axis


def button(text: str, tip: str, icon: str = "", role: theme.Role = "", slot: Action | None = None) -> QPushButton:
    """Return a push button. tip: tooltip, a sentence. slot: called on a click."""
    made = QPushButton()
    made.setAutoDefault(True)  # Enter presses the focused button, as in dialogs
    if icon:
        made.setIcon(theme.icon(icon, "on_accent" if role == "primary" else ""))
        made.setIconSize(QSize(18, 18))
    if role:
        theme.set_role(made, role)
    set_name_and_tip(made, text, tip)
    set_button_text(made, text)
    if slot is not None:
        made.clicked.connect(slot)
    return made


def set_button_text(made: QPushButton, text: str) -> None:
    """Set a button's text and accessible name. Adds a space after an icon, since Qt leaves too little."""
    made.setText(text if made.icon().isNull() else f" {text}")
    made.setAccessibleName(text)


def tool_button(icon: str, name: str, tip: str, slot: Action | None = None) -> QToolButton:
    """Return a button with only an icon. slot: called on a click."""
    made = QToolButton()
    made.setIcon(theme.icon(icon))
    made.setIconSize(QSize(18, 18))
    set_name_and_tip(made, name, tip)
    if slot is not None:
        made.clicked.connect(slot)
    return made


def toggle(text: str, tip: str, slot: Action | None = None) -> QToolButton:
    """Return a button with a text that stays pressed until it is pressed again. slot: called on a click."""
    made = QToolButton()
    made.setText(text)
    made.setCheckable(True)
    set_name_and_tip(made, text, tip)
    if slot is not None:
        made.clicked.connect(slot)
    return made


def check_box(text: str, tip: str) -> QCheckBox:
    made = QCheckBox(text)
    set_name_and_tip(made, text, tip)
    return made


def percent_slider(name: str, tip: str, value: int) -> QSlider:
    """Return a horizontal slider from 0 to 100."""
    made = QSlider(Qt.Orientation.Horizontal)
    made.setRange(0, 100)
    made.setValue(value)
    set_name_and_tip(made, name, tip)
    return made


def combo(name: str, tip: str) -> QComboBox:
    """Return a combo box that does not grow with long entries."""
    made = ComboBox()
    made.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
    made.setMinimumContentsLength(20)
    set_name_and_tip(made, name, tip)
    return made


def fill_combo(box: QComboBox, items: Iterable[tuple[str, object]], chosen: object) -> None:
    """Replace the entries (text, data) and select the entry with data `chosen`, or else the first. Emits no signals."""
    with QSignalBlocker(box):
        box.clear()
        for label, data in items:
            box.addItem(label, data)
        box.setCurrentIndex(max(0, box.findData(chosen)))


def pad_spin_box(box: QAbstractSpinBox) -> None:
    """Add left padding to the number, since Qt ignores a stylesheet's padding there."""
    box.lineEdit().setTextMargins(GRID, 0, 0, 0)


def set_name_and_tip(widget: QWidget, name: str, tip: str) -> None:
    """Set a widget's accessible name and tooltip. tip: a sentence; '({save})' in it becomes the keys of the command."""
    widget.setAccessibleName(name)
    widget.setToolTip(keys.tip(tip))
    widget.setProperty("tip", tip)


def name_tabs(tabs: QTabWidget, name: str, tip: str) -> None:
    """Set the accessible name and the tooltip of a tab bar, and the name of its pages."""
    tabs.setAccessibleName(name)
    tabs.setAccessibleDescription(tip)
    set_name_and_tip(tabs.tabBar(), name, tip)


def set_enabled(widget: QWidget, reason: str, tip: str = "") -> None:
    """Disable a widget if `reason` is not empty, and show its name with the reason as its tooltip; else enable it.

    reason: a sentence. tip: a new tooltip for the enabled widget; by default the tooltip stays.
    """
    if tip:
        widget.setProperty("tip", tip)
    widget.setEnabled(not reason)
    name = widget.accessibleName().removesuffix("…")
    widget.setToolTip(f"{name}: {_continued(reason)}" if reason else keys.tip(widget.property("tip")))


def show_instead(shown: QWidget, hidden: QWidget) -> None:
    """Show a control in place of another; the focus moves along."""
    shown.show()
    if hidden.hasFocus():
        shown.setFocus()
    hidden.hide()


def code_font() -> QFont:
    """Return the system's fixed-width font."""
    return QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)


def code_view(name: str, tip: str) -> QPlainTextEdit:
    """Return a read-only text field in a fixed-width font, without line breaks."""
    made = QPlainTextEdit()
    made.setReadOnly(True)
    made.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
    made.setFont(code_font())
    set_name_and_tip(made, name, tip)
    return made


class ProgressBar(QProgressBar):
    """A progress bar without text."""

    def __init__(self, tip: str = "Progress of the running job.") -> None:
        super().__init__()
        self.setTextVisible(False)
        set_name_and_tip(self, "Progress", tip)

    def show_busy(self) -> None:
        """Show a running job without a known progress."""
        self.setRange(0, 0)

    @Slot(object)
    def show_progress(self, progress: Progress) -> None:
        self.setRange(0, progress.total)
        self.setValue(progress.done)


class FieldError(QLabel):
    """A red line below a field with the reason for an invalid value; hidden for a valid value."""

    def __init__(self, field: QWidget, tip: str) -> None:
        """Create a hidden error line for a field. tip: the field's tooltip for valid values."""
        super().__init__()
        self._field, self._tip = field, tip
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        theme.set_role(self, "error")
        self.hide()

    def show_reason(self, reason: str) -> None:
        """Mark the field as invalid and show the reason; '' clears the mark."""
        if self._field.isEnabled():  # a disabled field's tooltip says why the field is disabled
            self._field.setToolTip(reason or self._tip)
        self._field.setAccessibleDescription(reason)
        if bool(self._field.property("invalid")) != bool(reason):
            self._field.setProperty("invalid", bool(reason))
            self._field.style().polish(self._field)
        self.setText(reason)
        self.setVisible(bool(reason))


def text(words: str = "", role: theme.Role = "", *, wrap: bool = True) -> QLabel:
    """Return a plain-text label."""
    made = QLabel(words)
    made.setTextFormat(Qt.TextFormat.PlainText)  # file and class names may contain HTML
    made.setWordWrap(wrap)
    if role:
        theme.set_role(made, role)
    return made


def title(words: str) -> QLabel:
    return text(words, "title", wrap=False)


def elided_title(words: str = "") -> ElidedLabel:
    """Return a page title that elides a long name in the middle."""
    made = ElidedLabel("title", Qt.TextElideMode.ElideMiddle)
    made.show_text(words)
    return made


def heading(words: str) -> QLabel:
    return text(words, "heading", wrap=False)


def caption(words: str) -> QLabel:
    """Return a muted label that wraps."""
    return text(words, "muted")


def badge(words: str) -> QLabel:
    """Return a label with a background for a short fact."""
    return text(words, "badge", wrap=False)


def labelled(label: str, widget: QWidget) -> QVBoxLayout:
    """Return a layout with a label above a widget; the label's mnemonic focuses the widget."""
    above = text(label, "muted", wrap=False)
    above.setBuddy(widget)
    if not widget.accessibleName():
        widget.setAccessibleName(label.replace("&", ""))
    return column(above, widget, spacing=4)


def row(*items: Item, spacing: int = GRID, margin: int | Margins = 0, grows: int = -1) -> QHBoxLayout:
    """Return a horizontal layout. Integers in `items` are stretches.

    margin: on all sides, or left, top, right and bottom. grows: index of the item that takes the free room.
    """
    return _fill(QHBoxLayout(), items, spacing, margin, grows)


def column(*items: Item, spacing: int = GRID, margin: int | Margins = 0, grows: int = -1) -> QVBoxLayout:
    """Return a vertical layout; see `row`."""
    return _fill(QVBoxLayout(), items, spacing, margin, grows)


def panel(layout: QLayout) -> QWidget:
    made = QWidget()
    made.setLayout(layout)
    return made


def stack(*pages: QWidget) -> QStackedWidget:
    """Create a stack: a widget that shows a single page at a time."""
    made = QStackedWidget()
    for page in pages:
        made.addWidget(page)
    return made


def clear(layout: QLayout) -> None:
    """Delete the widgets of a layout."""
    while (item := layout.takeAt(0)) is not None:
        if (widget := item.widget()) is not None:
            widget.hide()  # else visible until Qt deletes the widget
            widget.deleteLater()


def scroll_area(content: QWidget, name: str = "") -> QScrollArea:
    """Return a vertical scroll area around `content`.

    name: of content without controls. Tab stops at the area while a part of the content is out of view.
    """
    made = ScrollArea()
    if name:
        set_name_and_tip(made, name, "Scroll with the arrow keys.")
        made.setObjectName("table")  # shows the focus
        made.verticalScrollBar().rangeChanged.connect(made.take_tab_if_scrollable)
    made.setWidgetResizable(True)
    made.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # skipped by Tab
    made.setFrameShape(QScrollArea.Shape.NoFrame)
    made.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    made.setWidget(content)
    return made


def fill_splitter(
    splitter: QSplitter, parts: Iterable[QWidget], sizes: Sequence[int], layout: QByteArray, stretch: int = -1
) -> None:
    """Add parts to a splitter and restore its saved layout.

    sizes: in logical pixels, used without a saved layout. stretch: index of the part that grows with the window.
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


def retain_size_when_hidden(widget: QWidget) -> None:
    """Keep a hidden widget's space, so that other widgets don't move."""
    policy: QSizePolicy = widget.sizePolicy()
    policy.setRetainSizeWhenHidden(True)
    widget.setSizePolicy(policy)


class ElidedLabel(QLabel):
    """A single-line label that elides long text, never resizes its neighbours, and shows the full text as tooltip."""

    def __init__(self, role: theme.Role = "", elide: Qt.TextElideMode = Qt.TextElideMode.ElideRight) -> None:
        super().__init__()
        self._whole, self._tip, self._elide = "", "", elide
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        theme.set_role(self, role)

    def show_text(self, text: str, tip: str = "") -> None:
        """Show a text. tip: more text for the tooltip."""
        self._whole, self._tip = text, tip
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        text = self.fontMetrics().elidedText(self._whole, self._elide, self.width())
        if text != self.text():
            self.setText(text)
        self.setToolTip("\n".join(part for part in (self._whole if text != self._whole else "", self._tip) if part))


def _continued(sentence: str) -> str:
    """Return the sentence as it stands after a colon: with a small letter, except for 'PyTorch…' or 'Batch size: …'."""
    first, _, rest = sentence.partition(" ")
    is_plain = first == "A" or (first.isalpha() and first[1:].islower() and ":" not in rest)
    return sentence[0].lower() + sentence[1:] if is_plain else sentence


def _fill(layout: Box, items: tuple[Item, ...], spacing: int, margin: int | Margins, grows: int) -> Box:
    layout.setSpacing(spacing)
    layout.setContentsMargins(*(4 * (margin,) if isinstance(margin, int) else margin))
    for item in items:
        if isinstance(item, QWidget):
            layout.addWidget(item)
        elif isinstance(item, QLayout):
            layout.addLayout(item)
        else:
            layout.addStretch(item)
    if grows >= 0:
        layout.setStretch(grows, 1)
    return layout
