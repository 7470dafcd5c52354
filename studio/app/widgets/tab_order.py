"""Let Tab move the focus in the order of the layouts, also for widgets made later; keep a lost focus nearby."""

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtWidgets import (
    QAbstractButton,
    QLayout,
    QMainWindow,
    QScrollArea,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QWidget,
)

from studio.app import keys

_USED = (QEvent.Type.KeyPress, QEvent.Type.MouseButtonPress, QEvent.Type.FocusOut, QEvent.Type.DeferredDelete)
TAB_REASONS = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)


class PaneKeys(QObject):
    """Moves the focus between the panes of a window by keys: parts of splitters, and other parts of the window."""

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self._window = window
        keys.shortcut("next_pane", window, self._on_next_pane)
        keys.shortcut("previous_pane", window, self._on_previous_pane)

    @Slot()
    def _on_next_pane(self) -> None:
        self._move(1)

    @Slot()
    def _on_previous_pane(self) -> None:
        self._move(-1)

    def _move(self, step: int) -> None:
        stops: dict[QWidget, list[QWidget]] = {}  # by pane
        for stop in tab_stops(self._window):
            stops.setdefault(_pane(stop, self._window), []).append(stop)
        panes, focused = list(stops), self._window.focusWidget()
        current = _pane(focused, self._window) if focused is not None else None
        if panes:
            pane = panes[(panes.index(current) + step) % len(panes)] if current in stops else panes[0]
            _focus_last(pane, stops[pane])


def tab_stops(widget: QWidget, also: QWidget | None = None) -> Iterator[QWidget]:
    """Yield the visible, enabled controls in a widget that Tab stops at, in the order of the layouts.

    also: a control to yield in its turn even if it is hidden or disabled.
    """
    is_usable = widget.isVisible() and widget.isEnabled() and not widget.size().isEmpty()
    is_stop = is_usable and _takes_tab(widget)
    if is_stop or widget is also:
        yield widget
    if is_stop or not (is_usable or (also is not None and widget.isAncestorOf(also))):
        return
    for part in _parts(widget):
        if part is not None:
            yield from tab_stops(part, also)


class FocusReturn(QObject):
    """Gives the focus back to a disabled control once it is enabled, unless the user has used another control."""

    def __init__(self, lost: QWidget, holder: QWidget) -> None:
        """Watch a control that lost the focus by being disabled, and the control that has the focus now."""
        super().__init__(lost)
        self._lost, self._holder = lost, holder
        for widget in (lost, holder):
            widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        is_back = watched is self._lost and event.type() == QEvent.Type.EnabledChange and self._lost.isEnabled()
        if is_back or (watched is self._holder and event.type() in _USED):
            self._lost.removeEventFilter(self)
            self._holder.removeEventFilter(self)
            self.deleteLater()
            if is_back and self._lost.isVisible():
                self._lost.setFocus()
        return super().eventFilter(watched, event)


def move_focus(window: QWidget, *, forward: bool) -> bool:
    """Move the focus to the next (`forward`) or the previous control; return False without controls.

    Qt also moves the focus after the focused control was disabled or hidden.
    """
    lost: QWidget | None = window.focusWidget()
    stop, reasons = next_stop(window, forward=forward), Qt.FocusReason
    if stop is not None:
        stop.setFocus(reasons.TabFocusReason if forward else reasons.BacktabFocusReason)
        if lost is not None and lost is not stop and not lost.isEnabled():
            FocusReturn(lost, stop)
    return stop is not None


def focus_part(part: QWidget) -> None:
    """Focus the control of a page or a pane that had the focus last, or the first control."""
    _focus_last(part, list(tab_stops(part)))


def _focus_last(part: QWidget, stops: Sequence[QWidget]) -> None:
    """Focus a part's last focused widget if among `stops`, or else the first stop; without stops, focus the part."""
    last = part.focusWidget()
    target = last if last in stops else next(iter(stops), part)
    target.setFocus(Qt.FocusReason.OtherFocusReason)


def next_stop(window: QWidget, *, forward: bool) -> QWidget | None:
    """Return the control after (`forward`) or before the focused control; None without controls.

    If the focused control has just been disabled or hidden, return a control nearby.
    """
    focused: QWidget | None = window.focusWidget()
    if focused is not None and not (focused.isEnabled() and focused.isVisible()):
        return _stop_near(focused, window)
    stops = list(tab_stops(window, focused))  # also an area that takes clicks but not Tab
    while focused is not None and focused not in stops:  # the text field of a spin box, or a clicked area
        focused = focused.parentWidget()
    if not stops or focused is None:
        return stops[0 if forward else -1] if stops else None
    return stops[(stops.index(focused) + (1 if forward else -1)) % len(stops)]


def _stop_near(lost: QWidget, window: QWidget) -> QWidget | None:
    """Return the control after a disabled or hidden one, or else the one before, in the smallest part with any."""
    part: QWidget | None = lost
    while part is not None and part is not window:
        part = part.parentWidget()
        stops = list(tab_stops(part or window, lost))
        place = stops.index(lost) if lost in stops else -1  # a stack leaves out its hidden pages
        if near := stops[place + 1 :] or stops[place - 1 : place]:
            return near[0]
    return None


def _pane(widget: QWidget, window: QMainWindow) -> QWidget:
    """Return the pane that contains a widget."""
    while (parent := widget.parentWidget()) not in (None, window, window.centralWidget()):
        if isinstance(parent, QSplitter):
            break
        widget = parent
    return widget


def _takes_tab(widget: QWidget) -> bool:
    """Return whether Tab stops at a widget. Of exclusive buttons only the checked one is a stop; arrow keys go on."""
    group = widget.group() if isinstance(widget, QAbstractButton) else None
    if group is not None and group.exclusive() and group.checkedButton() is not None:
        return group.checkedButton() is widget  # Qt does not update the focus policy after setChecked()
    return bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.focusProxy() is None


def _parts(widget: QWidget) -> Sequence[QWidget | None]:
    """Return the direct parts of a container, in visible order."""
    if isinstance(widget, QMainWindow):
        return [widget.centralWidget(), widget.statusBar()]
    if isinstance(widget, QSplitter):
        return [widget.widget(index) for index in range(widget.count())]
    if isinstance(widget, QTabWidget):
        return [widget.tabBar(), widget.currentWidget()]
    if isinstance(widget, QStackedWidget):
        return [widget.currentWidget()]
    if isinstance(widget, QScrollArea):
        return [widget.widget()]
    layout = widget.layout()
    placed = list(laid_out(layout)) if layout is not None else []
    others = [each for each in widget.children() if isinstance(each, QWidget) and each not in placed]
    return placed + [each for each in others if not each.isWindow()]


def laid_out(layout: QLayout) -> Iterator[QWidget]:
    """Yield the widgets of a layout and of its inner layouts, in order.

    Does not call QLayout.itemAt(): PySide would tie the items to the short-lived Python object of the layout, and
    disable the items of a `FlowLayout` with it, so that the next layout pass crashes.
    """
    owner = layout.parentWidget()
    parts = [*layout.children(), *(owner.children() if owner is not None else ())]
    places = {layout.indexOf(part): part for part in parts if isinstance(part, QWidget | QLayout)}
    for _, part in sorted((place, part) for place, part in places.items() if place >= 0):
        if isinstance(part, QLayout):
            yield from laid_out(part)
        else:
            yield part
