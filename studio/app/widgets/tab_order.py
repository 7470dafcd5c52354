"""The order in which Tab moves the focus: that of the layouts, also for widgets made later."""

from collections.abc import Iterator, Sequence

from PySide6.QtCore import Qt
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


def tab_stops(widget: QWidget) -> Iterator[QWidget]:
    """Yield the visible, enabled controls in a widget that Tab stops at, in the order of the layouts."""
    if not widget.isVisible() or not widget.isEnabled() or widget.size().isEmpty():
        return
    if _takes_tab(widget):
        yield widget
        return
    for part in _parts(widget):
        if part is not None:
            yield from tab_stops(part)


def move_focus(window: QWidget, *, forward: bool) -> bool:
    """Move the focus to the next (`forward`) or the previous control; return False without controls."""
    stop, reasons = next_stop(window, forward=forward), Qt.FocusReason
    if stop is not None:
        stop.setFocus(reasons.TabFocusReason if forward else reasons.BacktabFocusReason)
    return stop is not None


def focus_part(part: QWidget) -> None:
    """Focus the control of a page or a pane that had the focus last, or the first control."""
    stops, last = list(tab_stops(part)), part.focusWidget()
    target = last if last in stops else next(iter(stops), part)
    target.setFocus(Qt.FocusReason.OtherFocusReason)


def next_stop(window: QWidget, *, forward: bool) -> QWidget | None:
    """Return the control after (`forward`) or before the focused control; None without controls."""
    stops = list(tab_stops(window))
    focused: QWidget | None = window.focusWidget()
    while focused is not None and focused not in stops:  # the text field of a spin box, or a clicked area
        focused = focused.parentWidget()
    if not stops or focused is None:
        return stops[0 if forward else -1] if stops else None
    return stops[(stops.index(focused) + (1 if forward else -1)) % len(stops)]


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
    placed = list(_placed(layout)) if layout is not None else []
    others = [each for each in widget.children() if isinstance(each, QWidget) and each not in placed]
    return placed + [each for each in others if not each.isWindow()]


def _placed(layout: QLayout) -> Iterator[QWidget]:
    """Yield the widgets of a layout and of its inner layouts, in order."""
    for index in range(layout.count()):
        item = layout.itemAt(index)
        inner = item.layout() if item is not None else None
        if item is not None and (placed := item.widget()) is not None:
            yield placed
        elif inner is not None:
            yield from _placed(inner)
