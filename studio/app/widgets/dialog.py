"""The base class of the dialogs."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QWidget

from studio.app.widgets.tab_order import move_focus


class Dialog(QDialog):
    """A dialog that Qt deletes after closing. Tab follows the order of the layouts."""

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def focusNextPrevChild(self, forward: bool) -> bool:
        return move_focus(self, forward=forward)
