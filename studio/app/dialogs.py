"""The system's own dialogs for folders and files, and the sheet with first steps and shortcuts."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFileDialog, QGridLayout, QWidget

from studio.app.state.settings import Settings
from studio.app.widgets import factory
from studio.core import files
from studio.data.palettes.files import palette_formats
from studio.data.sources.base import PICTURE_SUFFIXES
from studio.exports.sprites.base import SpriteExport
from studio.exports.sprites.formats import sprite_exports

_LAST = "last_folder"
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
_PICTURES = (
    f"Pictures ({' '.join(f'*{suffix}' for suffix in sorted(PICTURE_SUFFIXES))} *.ase *.aseprite);;All files (*)"
)
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
    ("Ctrl+Z, Ctrl+Shift+Z", "Undo, and redo, what was done to the sprites; take runs back from the trash"),
    ("F2, Ctrl+D", "Give a run a name, or a star, on the Runs page"),
    ("Ctrl+1 to Ctrl+5", "The five pages"),
    ("F1", "This sheet"),
    ("Ctrl+Q", "Leave; what trains is saved"),
)


def for_folder(parent: QWidget, settings: Settings, title: str) -> Path | None:
    """A folder that exists; None when the user thinks better of it."""
    chosen = QFileDialog.getExistingDirectory(parent, title, settings.text(_LAST, str(Path.home())))
    return _remembered(chosen, settings)


def for_files(parent: QWidget, settings: Settings, title: str) -> list[Path]:
    """Files that exist, pictures first."""
    chosen, _ = QFileDialog.getOpenFileNames(parent, title, settings.text(_LAST, str(Path.home())), _PICTURES)
    paths = [Path(path) for path in chosen]
    if paths:
        settings.keep_text(_LAST, str(paths[0].parent))
    return paths


def for_file(parent: QWidget, settings: Settings, title: str) -> Path | None:
    """A file that exists."""
    chosen, _ = QFileDialog.getOpenFileName(parent, title, settings.text("last_save_folder", str(Path.home())))
    return Path(chosen) if chosen else None


def for_palette(parent: QWidget, settings: Settings) -> Path | None:
    """A palette file that exists."""
    kinds = f"Palettes ({' '.join(f'*{suffix}' for suffix in _palette_kinds())})"
    start = settings.text(_LAST, str(Path.home()))
    chosen, _ = QFileDialog.getOpenFileName(parent, "Open a palette", start, kinds)
    return _remembered(chosen, settings)


def for_new_palette(parent: QWidget, settings: Settings, name: str) -> Path | None:
    """A palette file to write."""
    kinds = ";;".join(f"{title} (*{suffix})" for suffix, title in _palette_kinds().items())
    return for_new_file(parent, settings, "Save the palette", name, kinds)


def for_new_file(parent: QWidget, settings: Settings, title: str, name: str, kinds: str) -> Path | None:
    """A file to write; `kinds` as in 'PNG (*.png);;CSV (*.csv)'. A name that ends in none of them gets the chosen one.

    The dialog has asked about a file that is there only where it was named in full: another name is a free one.
    """
    stem, dot, ending = name.rpartition(".")
    proposed = f"{files.safe_name(stem)}.{ending}" if dot else files.safe_name(name)  # titles of sprites are in it
    start = Path(settings.text("last_save_folder", str(Path.home()))) / proposed
    chosen, kind = QFileDialog.getSaveFileName(parent, title, str(start), kinds)
    if not chosen:
        return None
    path = Path(chosen)
    if path.suffix.lower() not in _endings(kinds):
        path = files.free_path(path.with_name(path.name + _endings(kind or kinds)[0]))
    settings.keep_text("last_save_folder", str(path.parent))
    return path


def for_new_sprites(
    parent: QWidget, settings: Settings, title: str, name: str, *, plays: bool = False
) -> tuple[Path, SpriteExport] | None:
    """A file to write sprites into, and its format: the one that was chosen, or that the ending of its name says.

    plays: it shows one sprite after another. The format that `name` ends in is proposed, or the first one.
    """
    forms = [form for form in sprite_exports().values() if form.plays or not plays]
    kinds = {f"{form.title} (*{form.suffix})": form for form in forms}
    proposed = next((kind for kind, form in kinds.items() if form.suffix == Path(name).suffix), "")
    start = Path(settings.text("last_save_folder", str(Path.home()))) / files.safe_name(name)
    chosen, kind = QFileDialog.getSaveFileName(parent, title, str(start), ";;".join(kinds), proposed)
    if not chosen:
        return None
    path, form = Path(chosen), kinds.get(kind, forms[0])
    if path.suffix.lower() != form.suffix:
        form = next((known for known in forms if known.suffix == path.suffix.lower()), form)
    settings.keep_text("last_save_folder", str(path.parent))
    return path, form


def _endings(kinds: str) -> list[str]:
    return re.findall(r"\*(\.\w+)", kinds.lower())


def _remembered(chosen: str, settings: Settings) -> Path | None:
    if not chosen:
        return None
    settings.keep_text(_LAST, str(Path(chosen).parent))
    return Path(chosen)


def _palette_kinds() -> dict[str, str]:
    """What the suffix of a palette file stands for. Several kinds may share one: the first is what is written."""
    found: dict[str, str] = {}
    for form in palette_formats():
        for suffix in form.suffixes:
            found.setdefault(suffix, form.title[:1].upper() + form.title[1:])
    return found


_SHEET_PX = (800, 640)  # what fits into the lowest window


class HelpSheet(QDialog):
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
        sheet, margin = factory.scrolling(factory.panel(content)), 3 * factory.GRID
        self.setLayout(factory.column(sheet, factory.row(1, close), margin=margin))
        self.resize(*_SHEET_PX)
