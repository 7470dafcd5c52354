"""The list of all keyboard shortcuts, with a search field."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHeaderView, QLineEdit, QTreeWidget, QTreeWidgetItem, QWidget

from studio.app.widgets import factory

SHORTCUTS: dict[str, tuple[tuple[str, str], ...]] = {  # by the place where they work: keys, and what they do
    "Everywhere": (
        ("Ctrl+O", "Open a folder of sprites"),
        ("Ctrl+V", "Open copied images, files or folders"),
        ("Ctrl+R", "Start training"),
        ("Space", "Pause or resume"),
        ("Ctrl+.", "Stop and save"),
        ("Ctrl+S", "Save the shown sprites"),
        ("Ctrl+E", "Export the model"),
        ("Ctrl+Z", "Undo"),
        ("Ctrl+Shift+Z, Ctrl+Y", "Redo"),
        ("Ctrl+1 to Ctrl+5", "Switch pages"),
        ("Ctrl+,", "Settings"),
        ("F1", "First steps"),
        ("Ctrl+F1", "Keyboard shortcuts"),
        ("Ctrl+Q", "Quit; a running training is saved"),
    ),
    "Lists of sprites": (
        ("Enter", "View the sprite large"),
        ("Ctrl++, Ctrl+-", "Zoom in, zoom out"),
        ("Ctrl+C", "Copy the selected sprites"),
        ("Shift+F10", "Open the menu of the selected sprites"),
    ),
    "Large view": (
        ("Left, Right", "Previous and next sprite"),
        ("Home, End", "First and last sprite"),
        ("+, -, 0", "Zoom in, zoom out, fit to the window"),
        ("Escape", "Close the large view"),
    ),
    "Sprites page": (
        ("Ctrl+F", "Search by name and class"),
        ("M", "Move the selected sprites to another class"),
        ("Delete", "Exclude the selected sprites"),
        ("Escape", "Clear the search, then the chosen colour"),
        ("Ctrl+PgUp, Ctrl+PgDown", "Previous and next sheet while slicing"),
    ),
    "Generate page": (
        ("K", "Keep the selected sprites"),
        ("X", "Reject the selected sprites"),
        ("E", "Edit the selected sprite"),
        ("R", "Generate again"),
        ("Alt+Left, Alt+Right", "Previous and next batch"),
        ("Ctrl+V", "Edit or predict a copied image"),
    ),
    "Editor": (
        ("B, E, L, M, G", "Pencil, eraser, line, rectangle, bucket"),
        ("W, I, V", "By colour, eyedropper, move"),
        ("Arrow keys, Enter", "Move the cursor and use the tool"),
        ("Q", "Switch between painting and selecting"),
        ("[, ]", "Smaller and larger brush"),
        ("Ctrl+Shift+I", "Invert the selection"),
        ("+, -, 0", "Zoom in, zoom out, fit to the window"),
    ),
    "Runs page": (
        ("F2", "Rename the run"),
        ("Ctrl+D", "Star the selected runs"),
        ("Delete", "Move the selected runs to the trash"),
        ("Alt+Up, Alt+Down", "Move a run in the queue"),
    ),
    "Plots and the map": (
        ("Arrow keys", "Move the crosshair or the selection"),
        ("+, -", "Zoom in, zoom out"),
        ("Home", "Show all"),
    ),
}


class ShortcutList(QWidget):
    """All keyboard shortcuts, grouped by the place where they work, with a search field."""

    def __init__(self) -> None:
        super().__init__()
        self.search = QLineEdit(placeholderText="Search keys and commands", clearButtonEnabled=True)
        self.tree = QTreeWidget()
        self._groups: list[tuple[QTreeWidgetItem, list[QTreeWidgetItem]]] = []
        self.none = factory.caption("No shortcut matches.")
        factory.set_name_and_tip(self.search, "Search", "Show only the shortcuts with this text.")
        factory.set_name_and_tip(self.tree, "Keyboard shortcuts", "Keyboard shortcuts and what they do.")
        self.tree.setColumnCount(2)
        self.tree.setHeaderLabels(["Command", "Keys"])
        self.tree.setRootIsDecorated(False)
        self.tree.setItemsExpandable(False)
        self.tree.setIndentation(factory.GRID)
        self.tree.header().setStretchLastSection(False)
        self.tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.tree.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        for place, shortcuts in SHORTCUTS.items():
            group = QTreeWidgetItem(self.tree, [place])
            font = group.font(0)
            font.setBold(True)
            group.setFont(0, font)
            self._groups.append((group, [QTreeWidgetItem(group, [words, keys]) for keys, words in shortcuts]))
        self.tree.expandAll()
        self.none.hide()
        self.setLayout(factory.column(self.search, self.tree, self.none))
        self.search.textChanged.connect(self._on_search_changed)

    def shown(self) -> list[tuple[str, str]]:
        """Return the keys and the command of each shown shortcut."""
        items = [item for _, items in self._groups for item in items]
        return [(item.text(1), item.text(0)) for item in items if not item.isHidden()]

    @Slot(str)
    def _on_search_changed(self, text: str) -> None:
        """Hide the shortcuts without all words of the text, and groups without a shown shortcut."""
        words = text.casefold().split()
        for group, items in self._groups:
            for item in items:
                found = f"{group.text(0)} {item.text(0)} {item.text(1)}".casefold()
                item.setHidden(not all(word in found for word in words))
            group.setHidden(all(item.isHidden() for item in items))
        self.none.setVisible(not self.shown())
