"""The system's own dialogs for folders and files, and the sheet with first steps and shortcuts."""

from __future__ import annotations

import os
import re
from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QDialog, QFileDialog, QGridLayout, QMessageBox, QWidget

from studio.app.state.settings import Settings
from studio.app.widgets import factory
from studio.core import files
from studio.data.palettes.files import palette_formats
from studio.data.sources.base import DRAWING_SUFFIXES
from studio.exports.sprites.base import SpriteExport
from studio.exports.sprites.formats import sprite_exports

_LAST, _LAST_SAVE = "last_folder", "last_save_folder"
_STEPS = (
    "Drop a folder of sprites on the window. Its sub-folders become classes.",
    "On the Train page, press Start. The fastest device is already chosen.",
    "Watch the samples. Pause or stop whenever you like: nothing is lost.",
    "On the Generate page, make new sprites, also while the training runs.",
    "Edit shows one of them large: draw in it, or mark a part and press Fill in to have that drawn anew.",
    "For tiles, set Seamless under Advanced; a mix of two classes also makes a set of 16 that fit each other.",
    "For an animation, choose two sprites, press In between, and save the frames as a GIF.",
    "Save them as PNG files or a sheet, or export the model for other programs.",
)
_PICTURES = f"Pictures ({' '.join(f'*{suffix}' for suffix in sorted(DRAWING_SUFFIXES))});;All files (*)"
_SHORTCUTS = (
    ("Ctrl+O", "Open a folder of sprites"),
    ("Ctrl+R", "Start training"),
    ("Space", "Pause, or go on"),
    ("Ctrl+.", "Stop, and keep the work"),
    ("Ctrl+S", "Save the sprites on show"),
    ("K, X, R", "Keep or reject the new sprites that are chosen; draw others"),
    ("Ctrl+V", "Edit the picture in the clipboard, on the Generate page"),
    ("Ctrl+E", "Export the model"),
    ("Delete", "Leave out the sprites that are chosen; move runs that are chosen to the trash"),
    (
        "Ctrl+Z, Ctrl+Shift+Z",
        "Undo and redo on the page on show; bring back rejected sprites, and runs from the trash",
    ),
    ("Alt+Left, Alt+Right", "The sprites that were drawn before these, and after"),
    ("F2, Ctrl+D", "Give a run a name, or a star, on the Runs page"),
    ("Ctrl+1 to Ctrl+5", "The five pages"),
    ("F1", "This sheet"),
    ("Ctrl+Q", "Leave; what trains is saved"),
)


def choose_folder(parent: QWidget, settings: Settings, title: str) -> Path | None:
    """A folder that exists; None when the user thinks better of it."""
    chosen = QFileDialog.getExistingDirectory(parent, title, settings.text(_LAST, str(Path.home())))
    return _remembered(chosen, settings)


def choose_files(parent: QWidget, settings: Settings, title: str) -> list[Path]:
    """Files that exist, pictures first."""
    chosen, _ = QFileDialog.getOpenFileNames(parent, title, settings.text(_LAST, str(Path.home())), _PICTURES)
    paths = [Path(path) for path in chosen]
    if paths:
        settings.set_text(_LAST, str(paths[0].parent))
    return paths


def choose_file(parent: QWidget, settings: Settings, title: str) -> Path | None:
    """A file that exists."""
    chosen, _ = QFileDialog.getOpenFileName(parent, title, _save_folder(settings))
    return Path(chosen) if chosen else None


def choose_palette(parent: QWidget, settings: Settings) -> Path | None:
    """A palette file that exists."""
    kinds = f"Palettes ({' '.join(f'*{suffix}' for suffix in _palette_kinds())})"
    start = settings.text(_LAST, str(Path.home()))
    chosen, _ = QFileDialog.getOpenFileName(parent, "Open a palette", start, kinds)
    return _remembered(chosen, settings)


def choose_save_palette(parent: QWidget, settings: Settings, name: str) -> Path | None:
    """A palette file to write."""
    kinds = ";;".join(f"{title} (*{suffix})" for suffix, title in _palette_kinds().items())
    return choose_save_file(parent, settings, "Save the palette", name, kinds)


def choose_save_folder(parent: QWidget, settings: Settings, title: str) -> Path | None:
    """A folder to write files into, under names that are free in it."""
    chosen = QFileDialog.getExistingDirectory(parent, title, _save_folder(settings))
    if chosen:
        settings.set_text(_LAST_SAVE, chosen)
    return Path(chosen) if chosen else None


def choose_save_file(
    parent: QWidget, settings: Settings, title: str, name: str, kinds: str, *, replaces: bool = True
) -> Path | None:
    """A file to write; `kinds` as in 'PNG (*.png);;CSV (*.csv)'. A name that ends in none of them gets the chosen one.

    Where there is one already it may be replaced: the user was asked. replaces: False for what is never replaced;
    nothing is asked, and a name that is taken becomes a free one.
    """
    stem, dot, ending = name.rpartition(".")
    proposed = f"{files.safe_name(stem)}.{ending}" if dot else files.safe_name(name)  # titles of sprites are in it
    typed, kind = run_save_dialog(parent, title, Path(_save_folder(settings)) / proposed, kinds, confirms=replaces)
    if typed is None:
        return None
    path = typed
    if path.suffix.lower() not in _endings(kinds):
        path = path.with_name(path.name + _endings(kind or kinds)[0])
    if not replaces:
        path = files.free_path(path)
    elif not _may_replace(parent, [path] if path != typed else []):
        return None
    settings.set_text(_LAST_SAVE, str(path.parent))
    return path


def choose_save_sprites(
    parent: QWidget, settings: Settings, title: str, name: str, *, plays: bool = False
) -> tuple[Path, SpriteExport] | None:
    """A file to write sprites into, and its format: the one that was chosen, or that the ending of its name says.

    Where it is there already, it and the files that belong to it may be replaced: the user was asked.
    plays: it shows one sprite after another. The format that `name` ends in is proposed, or the first one.
    """
    forms = [form for form in sprite_exports().values() if form.plays or not plays]
    kinds = {f"{form.title} (*{form.suffix})": form for form in forms}
    proposed = next((kind for kind, form in kinds.items() if form.suffix == Path(name).suffix), "")
    start = Path(_save_folder(settings)) / files.safe_name(name)
    typed, kind = run_save_dialog(parent, title, start, ";;".join(kinds), proposed)
    if typed is None:
        return None
    path, form = typed, kinds.get(kind, forms[0])
    if path.suffix.lower() != form.suffix:
        form = next((known for known in forms if known.suffix == path.suffix.lower()), form)
    if path.suffix.lower() != form.suffix:
        path = path.with_name(path.name + form.suffix)
    was_asked = path == typed and os.path.lexists(path)
    beside = [path.with_suffix(suffix) for suffix in form.companions]
    if not _may_replace(parent, [] if was_asked else [path, *beside]):
        return None
    settings.set_text(_LAST_SAVE, str(path.parent))
    return path, form


def run_save_dialog(
    parent: QWidget, title: str, start: Path, kinds: str, proposed: str = "", *, confirms: bool = True
) -> tuple[Path | None, str]:
    """Let the system's dialog ask where to save; the path as it was typed, None for none, and the chosen kind.

    confirms: it asks whether a file that is there is to be replaced.
    """
    dialog = SaveDialog(parent, title, start, kinds, proposed)
    dialog.setOption(QFileDialog.Option.DontConfirmOverwrite, not confirms)
    try:
        chosen = dialog.selectedFiles() if dialog.exec() else []
        return Path(chosen[0]) if chosen else None, dialog.selectedNameFilter()
    finally:
        dialog.deleteLater()


class SaveDialog(QFileDialog):
    """The system's own. A name without an ending gets that of the chosen kind before it is asked about."""

    def __init__(self, parent: QWidget, title: str, start: Path, kinds: str, proposed: str = "") -> None:
        super().__init__(parent, title, str(start.parent), kinds)
        self.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        self.setFileMode(QFileDialog.FileMode.AnyFile)
        if proposed:
            self.selectNameFilter(proposed)
        self.selectFile(start.name)
        self.filterSelected.connect(self._take_kind)
        self._take_kind(self.selectedNameFilter())

    @Slot(str)
    def _take_kind(self, kind: str) -> None:
        endings = _endings(kind)
        self.setDefaultSuffix(endings[0] if endings else "")


def _may_replace(parent: QWidget, unasked: list[Path]) -> bool:
    """Ask of files that the system's dialog can't have asked about; True where none of them is there."""
    there = [path.name for path in unasked if os.path.lexists(path)]
    if not there:
        return True
    are, them = ("is", "it") if len(there) == 1 else ("are", "them")
    words = f"{' and '.join(there)} {are} there already.\nDo you want to replace {them}?"
    yes, no = QMessageBox.StandardButton.Yes, QMessageBox.StandardButton.No
    return QMessageBox.question(parent, "Replace what is there", words, yes | no, no) == yes


def _save_folder(settings: Settings) -> str:
    """Where something was saved last."""
    return settings.text(_LAST_SAVE, str(Path.home()))


def _endings(kinds: str) -> list[str]:
    return re.findall(r"\*(\.\w+)", kinds.lower())


def _remembered(chosen: str, settings: Settings) -> Path | None:
    if not chosen:
        return None
    settings.set_text(_LAST, str(Path(chosen).parent))
    return Path(chosen)


def _palette_kinds() -> dict[str, str]:
    """What the suffix of a palette file stands for. Several kinds may share one: the first is what is written."""
    found: dict[str, str] = {}
    for form in palette_formats():
        for suffix in form.suffixes:
            found.setdefault(suffix, form.title[:1].upper() + form.title[1:])
    return found


_SHEET_PX = (800, 640)  # what fits into the lowest window


class HelpDialog(QDialog):
    """What a first-time user needs, and nothing more."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWindowTitle("First steps and shortcuts")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        steps = QGridLayout()
        for number, words in enumerate(_STEPS, 1):
            steps.addWidget(factory.badge(str(number)), number, 0, Qt.AlignmentFlag.AlignTop)
            steps.addWidget(factory.text(words), number, 1)
        steps.setColumnStretch(1, 1)
        keys = QGridLayout()
        keys.setHorizontalSpacing(3 * factory.GRID)
        for line, (key, words) in enumerate(_SHORTCUTS):
            keys.addWidget(factory.badge(key), line, 0, Qt.AlignmentFlag.AlignLeft)
            keys.addWidget(factory.text(words), line, 1)
        keys.setColumnStretch(1, 1)
        close = factory.button("Close", "Close this sheet. (Esc)")
        close.clicked.connect(self.reject)
        heading = factory.heading
        content = factory.column(heading("First steps"), steps, heading("Shortcuts"), keys, 1)
        sheet, margin = factory.scroll_area(factory.panel(content)), 3 * factory.GRID
        self.setLayout(factory.column(sheet, factory.row(1, close), margin=margin))
        self.resize(*_SHEET_PX)
