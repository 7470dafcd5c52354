"""The menu of 'Train longer', for the Train page and the Runs page."""

from collections.abc import Callable

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QPushButton

from studio.app.widgets import factory
from studio.core.formatting import duration

_MINUTES = (2, 5, 10, 30, 60, 120)


def train_longer_button(slot: Callable[[QAction], object]) -> QPushButton:
    """Return the button 'Train longer' with a menu. slot: receives the chosen action; its data are the minutes."""
    made = factory.button("Train longer", "Continue this run for more minutes.", "resume")
    menu = QMenu(made)
    for each in _MINUTES:
        menu.addAction(duration(60 * each)).setData(float(each))
    menu.triggered.connect(slot)
    made.setMenu(menu)
    return made
