"""What assistive technology and the keyboard meet: every control is named, described and reached by Tab."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QHeaderView,
    QLineEdit,
    QMenuBar,
    QScrollBar,
    QTabBar,
    QWidget,
)

from studio.app.widgets.tab_order import tab_stops
from studio.app.window import Window
from tests.app.every_dialog import dialog_classes, every_dialog

_MOST_LINKS = 200  # of a text, each a stop of Tab


def nameless(window: QWidget) -> list[str]:
    """Return the controls in a window that assistive technology can't name or describe."""
    controls = (QAbstractButton, QComboBox, QAbstractSpinBox, QLineEdit, QAbstractItemView, QAbstractSlider, QTabBar)
    internal, found = (QAbstractSpinBox, QComboBox, QTabBar, QMenuBar, QAbstractItemView, QLineEdit), []
    for widget in window.findChildren(QWidget):
        takes_tab = bool(widget.focusPolicy() & Qt.FocusPolicy.TabFocus) and widget.focusProxy() is None
        part_of = widget.parentWidget()
        is_part = isinstance(part_of, internal) or isinstance(widget, QScrollBar | QHeaderView)
        is_popup = part_of is not None and part_of.inherits("QComboBoxPrivateContainer")
        is_plot = part_of is not None and part_of.inherits("QGraphicsView")  # named itself
        if not (takes_tab or isinstance(widget, controls)) or is_part or is_popup or is_plot:
            continue
        spoken, texts = QAccessible.queryAccessibleInterface(widget), QAccessible.Text
        name, description = spoken.text(texts.Name), spoken.text(texts.Description)
        if isinstance(widget, QTabBar):  # Qt speaks the name of the current tab
            name, description = widget.accessibleName(), widget.toolTip()
        if not name.strip() or not description.strip():
            found.append(f"{type(widget).__name__} {name!r} in {type(part_of).__name__}: {description!r}")
    return found


def tabbed(window: QWidget) -> list[QWidget]:
    """Press Tab from the first control until it has the focus again; return the controls with the focus."""
    found: list[QWidget] = []
    first = next(tab_stops(window))
    first.setFocus()
    while (focused := window.focusWidget()) is not None and focused not in found:
        found.append(focused)
        for _ in range(_MOST_LINKS):
            QTest.keyClick(focused, Qt.Key.Key_Tab)
            if window.focusWidget() is not focused:
                break
    assert focused is first
    QTest.keyClick(first, Qt.Key.Key_Backtab)
    assert window.focusWidget() is found[-1]
    return found


def is_after(window: QWidget, stop: QWidget, before: QWidget) -> bool:
    """Return whether a control is right of or below another control of the same parent."""
    here, there = (QRect(each.mapTo(window, QPoint()), each.size()) for each in (stop, before))
    return here.left() >= there.right() or here.top() >= there.bottom()


def tab_problems(window: QWidget, inside: QWidget) -> list[str]:
    """Walk through a window with Tab; return the controls of a part that Tab misses or reaches out of order."""
    stops, found = tabbed(window), []
    for control in inside.findChildren(QAbstractButton):
        group = control.group()
        is_other = group is not None and group.exclusive() and not control.isChecked()
        takes_focus = control.isVisible() and control.isEnabled() and control.focusPolicy() and not is_other
        if takes_focus and control not in stops and not isinstance(control.parent(), QLineEdit | QTabBar):
            found.append(f"Tab misses {control.accessibleName()}")
    for before, stop in pairwise(stops):
        if before.parent() is stop.parent() and not is_after(window, stop, before):
            found.append(f"{stop.accessibleName()} comes after {before.accessibleName()}")
    return found


def test_every_control_is_named_and_reached_by_tab_in_visible_order(opened: Window) -> None:
    opened.activateWindow()
    for name in opened.pages:  # a page joins the window when it is first shown
        opened.show_page(name)
        QApplication.processEvents()
        stops = list(tab_stops(opened))
        assert len(stops) > 4 and stops[0].accessibleName() == name.capitalize(), name
        assert tab_problems(opened, opened.page()) == [], name
    opened.generate.sets.show_kind(("down/stand",), 8)
    assert nameless(opened) == []


def test_every_control_of_every_dialog_is_named_and_reached_by_tab(opened: Window) -> None:
    shown, found = set(), []
    for stage, dialog in every_dialog(opened):
        shown.add(type(dialog))
        QApplication.processEvents()
        problems = [*nameless(dialog), *tab_problems(dialog, dialog)]
        found += [f"{type(dialog).__name__} {stage}: {problem}" for problem in problems]
    assert found == []
    assert shown == dialog_classes()  # a new dialog belongs into every_dialog()
