"""A field for a typed path, which completes names of files and folders, with a button for the system's dialog."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QDir, Qt, Signal, Slot
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QFocusEvent
from PySide6.QtWidgets import QCompleter, QFileDialog, QFileSystemModel, QLineEdit, QWidget

from studio.app.widgets import factory, pasted
from studio.core.names import existing_path

PathKind = Literal["file", "folder"]
_BROWSE = {"file": "Choose a file in the system's dialog.", "folder": "Choose a folder in the system's dialog."}

_ROWS = "QListView::item { min-height: 24px; padding: 0 6px; }"


class PathField(QWidget):
    """A text field for a path. Enter '~' for the home folder.

    changed: the text changed, valid or not. finished: the user left the field, pressed Enter, or chose in the dialog.
    """

    changed = Signal(str)
    finished = Signal()

    def __init__(self, kind: PathKind, browse: factory.Action | None = None) -> None:
        """Create an empty field. browse: called instead of the dialog for an existing file or folder."""
        super().__init__()
        self._kind = kind
        self.line = _CompletingLine(kind)
        self.browse = factory.tool_button("folder", "Browse", _BROWSE[kind], browse or self._on_browse_clicked)
        self.setLayout(factory.row(self.line, self.browse, spacing=factory.GRID // 2, grows=0))
        self.setFocusProxy(self.line)
        self.line.textChanged.connect(self.changed)
        self.line.editingFinished.connect(self._on_editing_finished)

    def text(self) -> str:
        """Return the text as typed."""
        return self.line.text()

    def set_text(self, text: str) -> None:
        self.line.setText(text)

    def path(self) -> Path:
        """Return the typed path, with '~' replaced by the home folder."""
        return existing_path(os.path.expanduser(self.text().strip()))  # noqa: PTH111 - Path's raises RuntimeError

    @Slot()
    def _on_editing_finished(self) -> None:
        """Emit `finished`, unless Enter only took a completion."""
        completer = self.line.completer()
        popup = completer.popup() if isinstance(completer, PathCompleter) else None
        if popup is None or not popup.isVisible():
            self.finished.emit()

    @Slot()
    def _on_browse_clicked(self) -> None:
        """Let the user choose an existing file or folder; start at the typed path."""
        start = str(self.path()) if self.text().strip() else str(Path.home())
        if self._kind == "folder":
            chosen = QFileDialog.getExistingDirectory(self, "Choose a folder", start)
        else:
            chosen, _ = QFileDialog.getOpenFileName(self, "Choose a file", start)
        if chosen:
            self.set_text(QDir.toNativeSeparators(chosen))
            self.finished.emit()


class _CompletingLine(QLineEdit):
    """A line that completes paths. The completer, which reads folders in a thread, is created at the first focus."""

    def __init__(self, kind: PathKind) -> None:
        super().__init__()
        self._kind = kind

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if not isinstance(self.completer(), PathCompleter):
            self.setCompleter(PathCompleter(self._kind, self))

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept a single file or folder; file managers also send its URL as text."""
        if len(pasted.local_paths(event.mimeData())) == 1:
            event.acceptProposedAction()
        else:
            super().dragEnterEvent(event)

    def dropEvent(self, event: QDropEvent) -> None:
        """Replace the text by the path of a dropped file or folder."""
        paths = pasted.local_paths(event.mimeData())
        if len(paths) != 1:
            super().dropEvent(event)
            return
        event.acceptProposedAction()
        self.setText(str(paths[0]))
        self.editingFinished.emit()


class PathCompleter(QCompleter):
    """Completes the names of existing folders and, for kind 'file', files; lists a folder once it is typed."""

    def __init__(self, kind: PathKind, line: QLineEdit) -> None:
        super().__init__(line)
        self._line = line
        shown = QDir.Filter.AllDirs | QDir.Filter.Drives | QDir.Filter.NoDotAndDotDot
        self._folders = model = QFileSystemModel(self)
        model.setOption(QFileSystemModel.Option.DontWatchForChanges)
        model.setOption(QFileSystemModel.Option.DontUseCustomDirectoryIcons)
        model.setFilter(shown if kind == "folder" else shown | QDir.Filter.Files)
        model.setRootPath("")
        model.directoryLoaded.connect(self._on_folder_read)
        self.setModel(model)
        self.setCompletionMode(QCompleter.CompletionMode.PopupCompletion)
        self.setCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        popup = self.popup()
        assert popup is not None
        popup.setStyleSheet(_ROWS)  # a window of its own, so the window's stylesheet does not reach it

    @Slot()
    def _on_folder_read(self) -> None:
        """Complete again: Qt shows nothing for a path typed or pasted before its folders were read."""
        popup, line = self.popup(), self._line
        if line.hasFocus() and line.isModified() and popup is not None and not popup.isVisible():
            self.setCompletionPrefix(line.text())
            if self.completionCount():
                self.complete()

    def splitPath(self, path: str) -> list[str]:
        """Return the parts of a typed path, with '~' replaced by the home folder, and start to read its folder."""
        path = os.path.expanduser(path)  # noqa: PTH111
        self._folders.index(os.path.dirname(path))  # noqa: PTH120 - Path drops the last '/'
        return super().splitPath(path)
