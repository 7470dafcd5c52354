"""Keys, wheel notches and tooltips that several widgets handle in the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QCoreApplication, QEvent, QMimeData, QObject, QPoint, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QHelpEvent, QKeyEvent, QKeySequence, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QToolTip,
    QWidget,
)

from studio.app import keys

NOTCH = 120  # angle of a wheel notch, in eighths of a degree; touchpads send smaller angles
ARROWS = {Qt.Key.Key_Left: (-1, 0), Qt.Key.Key_Right: (1, 0), Qt.Key.Key_Up: (0, -1), Qt.Key.Key_Down: (0, 1)}  # x, y


class KeyCommands(QObject):
    """Runs a widget's commands by their keys, such as Ctrl+Z, before the window's shortcuts receive the keys.

    commands: by name in `keys.COMMANDS`. fixed: by key.
    """

    def __init__(
        self,
        widget: QWidget,
        commands: Mapping[str, Callable[[], object]],
        fixed: Mapping[str, Callable[[], object]],
    ) -> None:
        super().__init__(widget)
        self._commands, self._fixed = commands, fixed
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind in (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress) and isinstance(event, QKeyEvent):
            key = QKeySequence(event.keyCombination()).toString(QKeySequence.SequenceFormat.PortableText)
            matching = (run for name, run in self._commands.items() if keys.table().matches(name, event))
            command = next(matching, self._fixed.get(key))
            if command is not None:
                event.accept()
                if kind == QEvent.Type.KeyPress:
                    command()
                return True
        return super().eventFilter(watched, event)


class PlaceTips(QObject):
    """Shows tooltips for the places in a widget. text_at: returns the text at a position; '' for none."""

    def __init__(self, widget: QWidget, text_at: Callable[[QPoint], str]) -> None:
        super().__init__(widget)
        self._text_at = text_at
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not (isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip and isinstance(watched, QWidget)):
            return super().eventFilter(watched, event)
        QToolTip.showText(event.globalPos(), self._text_at(event.pos()), watched)
        return True


class ZoomWheel(QObject):
    """Turns wheel events of a view with Ctrl into zoom steps. zoomed: number of steps."""

    zoomed = Signal(int)

    def __init__(self, view: QAbstractItemView) -> None:
        super().__init__(view)
        self._angle = 0  # since the last whole notch
        view.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not (isinstance(event, QWheelEvent) and event.modifiers() & Qt.KeyboardModifier.ControlModifier):
            return super().eventFilter(watched, event)
        self._angle += event.angleDelta().y()
        steps = int(self._angle / NOTCH)
        self._angle -= steps * NOTCH
        if steps:
            self.zoomed.emit(steps)
        event.accept()
        return True


class SelectionDrag(QObject):
    """Tells when the user drags the selected items of a view, if `is_enabled`. begun: the mouse has moved far enough.

    A press on a selected item waits for the mouse to move or to be released, since it would clear the selection.
    """

    begun = Signal()

    def __init__(self, view: QAbstractItemView) -> None:
        super().__init__(view)
        self.is_enabled = False
        self._view = view
        self._waiting: QMouseEvent | None = None  # a press on a selected item
        self._is_late = False  # the view receives a press that has waited
        view.viewport().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if not isinstance(event, QMouseEvent) or self._is_late:
            return False
        if kind == QEvent.Type.MouseButtonPress and self._starts(event):
            self._waiting = event.clone()
            return True
        if self._waiting is None:
            return False
        if kind == QEvent.Type.MouseButtonRelease:
            press, self._waiting, self._is_late = self._waiting, None, True
            QCoreApplication.sendEvent(watched, press)
            self._is_late = False
        elif (event.position() - self._waiting.position()).manhattanLength() >= QApplication.startDragDistance():
            self._waiting = None
            self.begun.emit()
        return kind == QEvent.Type.MouseMove

    def _starts(self, press: QMouseEvent) -> bool:
        is_plain = press.button() == Qt.MouseButton.LeftButton and press.modifiers() == Qt.KeyboardModifier.NoModifier
        index = self._view.indexAt(press.position().toPoint())
        return self.is_enabled and is_plain and self._view.selectionModel().isSelected(index)


class WheelNeedsFocus(QObject):
    """Lets the wheel change a control only while the control has the focus; otherwise the wheel scrolls the page."""

    def __init__(self, control: QWidget) -> None:
        super().__init__(control)
        control.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel alone must not focus the control
        control.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Wheel and isinstance(watched, QWidget) and not watched.hasFocus():
            event.ignore()
            return True
        return super().eventFilter(watched, event)


class PageWheel(QObject):
    """Lets the wheel over an area that only scrolls sideways scroll the page."""

    def __init__(self, area: QScrollArea) -> None:
        super().__init__(area)
        for part in (area, area.viewport(), area.horizontalScrollBar()):
            part.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QWheelEvent) or abs(event.angleDelta().x()) > abs(event.angleDelta().y()):
            return super().eventFilter(watched, event)
        event.ignore()  # Qt passes an ignored event on to the parent
        return True


class NoSecondPress(QObject):
    """Keeps a second Enter or a double click on Start from pressing the Cancel or Pause button in the place of Start.

    The Space key and a single click press the button.
    """

    def __init__(self, button: QAbstractButton, is_cancel: Callable[[], bool] = lambda: True) -> None:
        """Watch a Cancel button. is_cancel: returns whether the button cancels now, for a button that also starts."""
        super().__init__(button)
        self._is_cancel = is_cancel
        button.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        is_second = event.type() == QEvent.Type.MouseButtonDblClick  # a second click on Cancel does not start again
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            is_second = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self._is_cancel()
        return is_second or super().eventFilter(watched, event)


class FocusWhenShown(QObject):
    """Focuses a widget on request: at once, or a hidden widget when it is shown."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget, self._is_waiting = widget, False
        widget.installEventFilter(self)

    @Slot()
    def request(self) -> None:
        self._is_waiting = not self._widget.isVisible()
        if not self._is_waiting:
            self._widget.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and self._is_waiting:
            self.request()
        return super().eventFilter(watched, event)


class ListSearch(QObject):
    """Lets typed letters search the open list of a list box, where a page has commands with these letters as keys."""

    def __init__(self, box: QComboBox) -> None:
        super().__init__(box)
        box.view().installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and event.text().isalnum():
            event.accept()
        return super().eventFilter(watched, event)


class PastedImages(QObject):
    """Leaves Ctrl+V to the window while a text field has the focus, if the clipboard holds no text for the field."""

    def __init__(self, window: QWidget, can_paste: Callable[[QMimeData], bool]) -> None:
        """Watch the text fields of a window. can_paste: returns whether the window can use the data."""
        super().__init__(window)
        self._window, self._can_paste = window, can_paste
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._on_focus_changed)

    @Slot(QWidget, QWidget)
    def _on_focus_changed(self, _before: QWidget | None, field: QWidget | None) -> None:
        kinds = QLineEdit | QPlainTextEdit | QAbstractSpinBox | QComboBox
        if isinstance(field, kinds) and field.window() is self._window:
            field.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            data = QGuiApplication.clipboard().mimeData()
            if event.matches(QKeySequence.StandardKey.Paste) and not _has_text(data) and self._can_paste(data):
                event.ignore()  # the field would accept the keys and paste nothing
                return True
        return super().eventFilter(watched, event)


def _has_text(data: QMimeData) -> bool:
    """Return whether the data holds text; Qt counts files as text too."""
    return data.hasFormat("text/plain")


def paste_text() -> bool:
    """Paste the text of the clipboard into the focused text field; return False without a text or a field."""
    field = QApplication.focusWidget()
    if isinstance(field, QAbstractSpinBox):
        field = field.lineEdit()
    if not isinstance(field, QLineEdit | QPlainTextEdit) or field.isReadOnly():
        return False
    if not _has_text(QGuiApplication.clipboard().mimeData()):
        return False
    field.paste()
    return True
