"""File dialogs of the system, and the dialog that verifies a file."""

import os
import re
from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QFileDialog, QGridLayout, QLabel, QMessageBox, QWidget

from studio.app import theme
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.app.widgets import factory
from studio.app.widgets.dialog import Dialog
from studio.core import files
from studio.core.events import Verified
from studio.data.palettes.files import palette_formats
from studio.data.sources.base import DRAWING_SUFFIXES
from studio.exports.model_cards import LIMITS
from studio.exports.sprites.base import SpriteExport
from studio.exports.sprites.formats import forms_for

_LAST, _LAST_SAVE = "last_folder", "last_save_folder"
# Settings keys of the last chosen formats.
_LAST_SHEET, _LAST_ANIMATION, _LAST_TILES = "last_sheet_format", "last_animation_format", "last_tile_format"
_PICTURES = f"Images ({' '.join(f'*{suffix}' for suffix in sorted(DRAWING_SUFFIXES))});;All files (*)"
_MARKS = {True: ("check", "Yes"), False: ("warning", "No"), None: ("info", "Unknown")}


def choose_folder(parent: QWidget, settings: Settings, title: str) -> Path | None:
    """Let the user choose an existing folder; return None if cancelled."""
    chosen = QFileDialog.getExistingDirectory(parent, title, settings.text(_LAST, str(Path.home())))
    return _remember_folder(chosen, settings)


def choose_files(parent: QWidget, settings: Settings, title: str) -> list[Path]:
    """Let the user choose existing files, by default images."""
    chosen, _ = QFileDialog.getOpenFileNames(parent, title, settings.text(_LAST, str(Path.home())), _PICTURES)
    paths = [Path(path) for path in chosen]
    if paths:
        settings.set_text(_LAST, str(paths[0].parent))
    return paths


def choose_file(parent: QWidget, settings: Settings, title: str) -> Path | None:
    """Let the user choose an existing file; return None if cancelled."""
    chosen, _ = QFileDialog.getOpenFileName(parent, title, str(save_folder(settings)))
    return Path(chosen) if chosen else None


def choose_palette(parent: QWidget, settings: Settings) -> Path | None:
    """Let the user choose an existing palette file; return None if cancelled."""
    kinds = f"Palettes ({' '.join(f'*{suffix}' for suffix in _palette_suffixes())})"
    start = settings.text(_LAST, str(Path.home()))
    chosen, _ = QFileDialog.getOpenFileName(parent, "Open a palette", start, kinds)
    return _remember_folder(chosen, settings)


def choose_class_file(parent: QWidget, settings: Settings) -> Path | None:
    """Let the user choose a class file of lessons; return None if cancelled."""
    start = settings.text(_LAST, str(Path.home()))
    chosen, _ = QFileDialog.getOpenFileName(parent, "Open a class file", start, "Class files (*.toml);;All files (*)")
    return _remember_folder(chosen, settings)


def choose_save_palette(parent: QWidget, settings: Settings, name: str) -> Path | None:
    """Let the user choose a palette file to write; return None if cancelled."""
    kinds = ";;".join(f"{title} (*{suffix})" for suffix, title in _palette_suffixes().items())
    return choose_save_file(parent, settings, "Save the palette", name, kinds)


def choose_save_folder(parent: QWidget, settings: Settings, title: str) -> Path | None:
    """Let the user choose a folder for new files; return None if cancelled."""
    chosen = QFileDialog.getExistingDirectory(parent, title, str(save_folder(settings)))
    if chosen:
        settings.set_text(_LAST_SAVE, chosen)
    return Path(chosen) if chosen else None


def choose_save_file(
    parent: QWidget, settings: Settings, title: str, name: str, kinds: str, *, replaces: bool = True
) -> Path | None:
    """Let the user choose a file to write; return None if cancelled.

    kinds: a Qt filter like 'PNG (*.png);;CSV (*.csv)'; a name with another suffix gets the chosen filter's suffix.
    replaces: ask before replacing an existing file. If False, choose a free file name instead.
    """
    stem, dot, suffix = name.rpartition(".")  # the name may contain titles of sprites
    proposed = f"{files.output_name(stem)}.{suffix}" if dot else files.output_name(name)
    typed, kind = run_save_dialog(parent, title, save_folder(settings) / proposed, kinds, confirms=replaces)
    if typed is None:
        return None
    path = typed
    if path.suffix.lower() not in _suffixes_of(kinds):
        path = path.with_name(path.name + _suffixes_of(kind or kinds)[0])
    if not replaces:
        path = files.free_path(path)
    elif not _may_replace(parent, [path] if path != typed else []):
        return None
    settings.set_text(_LAST_SAVE, str(path.parent))
    return path


def choose_save_sprites(
    parent: QWidget, settings: Settings, title: str, name: str, *, plays: bool = False, is_tile_set: bool = False
) -> tuple[Path, SpriteExport] | None:
    """Let the user choose a file for sprites and its format; return None if cancelled.

    The suffix of the typed name decides the format; without a suffix, the chosen filter decides. The user is asked
    before files are replaced. plays: offer only animation formats. is_tile_set: offer formats of tile sets first.
    name: proposed name; '.gif' at its end proposes an animation. The last chosen format, of animations, of tile sets or
    of other sprites, is preselected.
    """
    forms = forms_for(plays=plays, is_tile_set=is_tile_set)
    kinds = {f"{form.title} (*{form.suffix})": form for form in forms}
    stem, _, end = name.rpartition(".")
    usual = next((kind for kind, form in kinds.items() if form.plays and form.suffix == f".{end}"), "")
    last = _LAST_TILES if is_tile_set else _LAST_ANIMATION if usual else _LAST_SHEET
    proposed = next((kind for kind, form in kinds.items() if form.name == settings.text(last)), usual)
    if usual:
        name = f"{stem}{kinds[proposed].suffix}"
    start = save_folder(settings) / files.output_name(name)
    typed, kind = run_save_dialog(parent, title, start, ";;".join(kinds), proposed)
    if typed is None:
        return None
    form = kinds.get(kind, forms[0])
    if typed.suffix.lower() != form.suffix:
        form = next((known for known in forms if known.suffix == typed.suffix.lower()), form)
    path = typed if typed.suffix.lower() == form.suffix else typed.with_name(typed.name + form.suffix)
    has_asked = path == typed and os.path.lexists(path)
    companions = [path.with_suffix(suffix) for suffix in form.companions]
    if not _may_replace(parent, [] if has_asked else [path, *companions]):
        return None
    settings.set_text(_LAST_SAVE, str(path.parent))
    settings.set_text(last, form.name)
    return path, form


def run_save_dialog(
    parent: QWidget, title: str, start: Path, kinds: str, proposed: str = "", *, confirms: bool = True
) -> tuple[Path | None, str]:
    """Run the system's save dialog; return the typed path (None if cancelled) and the chosen filter."""
    dialog = SaveDialog(parent, title, start, kinds, proposed)
    dialog.setOption(QFileDialog.Option.DontConfirmOverwrite, not confirms)  # confirms: ask before replacing a file
    try:
        chosen = dialog.selectedFiles() if dialog.exec() else []
        return Path(chosen[0]) if chosen else None, dialog.selectedNameFilter()
    finally:
        dialog.deleteLater()


class SaveDialog(QFileDialog):
    """The system's save dialog. A name without a suffix gets the chosen filter's suffix before the overwrite check."""

    def __init__(self, parent: QWidget, title: str, start: Path, kinds: str, proposed: str = "") -> None:
        super().__init__(parent, title, str(start.parent), kinds)
        self.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        self.setFileMode(QFileDialog.FileMode.AnyFile)
        if proposed:
            self.selectNameFilter(proposed)
        self.selectFile(start.name)
        self.filterSelected.connect(self._on_filter_selected)
        self._on_filter_selected(self.selectedNameFilter())

    @Slot(str)
    def _on_filter_selected(self, kind: str) -> None:
        suffixes = _suffixes_of(kind)
        self.setDefaultSuffix(suffixes[0] if suffixes else "")


def _may_replace(parent: QWidget, paths: list[Path]) -> bool:
    """Return whether `paths` may be written; if some of these files exist, ask the user."""
    existing = [path.name for path in paths if os.path.lexists(path)]
    if not existing:
        return True
    exist, them = ("exists", "it") if len(existing) == 1 else ("exist", "them")
    question = f"{' and '.join(existing)} already {exist}.\nReplace {them}?"
    yes, no = QMessageBox.StandardButton.Yes, QMessageBox.StandardButton.No
    return QMessageBox.question(parent, "Replace files", question, yes | no, no) == yes


def save_folder(settings: Settings) -> Path:
    """Return the folder of the last saved file, or the home folder."""
    return Path(settings.text(_LAST_SAVE, str(Path.home())))


def _suffixes_of(kinds: str) -> list[str]:
    return re.findall(r"\*(\.\w+)", kinds.lower())


def _remember_folder(chosen: str, settings: Settings) -> Path | None:
    if not chosen:
        return None
    settings.set_text(_LAST, str(Path(chosen).parent))
    return Path(chosen)


def _palette_suffixes() -> dict[str, str]:
    """Return the format title for each palette file suffix. If formats share a suffix, the first format counts."""
    found: dict[str, str] = {}
    for form in palette_formats():
        for suffix in form.suffixes:
            found.setdefault(suffix, form.title[:1].upper() + form.title[1:])
    return found


class VerifyDialog(Dialog):
    """Verifies a file and lists the checks with their results."""

    def __init__(self, session: Session, path: Path, parent: QWidget) -> None:
        super().__init__(f"Verify {path.name}", parent)
        self._path = path
        self.verdict = factory.elided_title("Verifying…")
        self.checks = QGridLayout()
        self.checks.setColumnStretch(1, 1)
        self.close_button = factory.button("Close", "Close this window.", role="primary", slot=self.accept)
        content = factory.column(self.checks, factory.caption(LIMITS), 1, spacing=2 * factory.GRID)
        area, foot = factory.scroll_area(factory.panel(content), "Checks"), factory.row(1, self.close_button)
        self.setLayout(factory.column(self.verdict, area, foot, margin=3 * factory.GRID, grows=1))
        self.resize(560, 360)
        session.inference.verified.connect(self._on_verified)
        session.failed.connect(self._on_failed)
        session.inference.verify(path)

    @Slot(object)
    def _on_verified(self, found: Verified) -> None:
        if found.path == self._path:
            name = found.path.name
            self.verdict.show_text(f"{name} is unchanged" if found.holds else f"{name} has changed")
            for row, check in enumerate(found.checks):
                icon, words = _MARKS[check.holds]
                mark = QLabel(pixmap=theme.icon(icon).pixmap(20, 20))
                factory.set_name_and_tip(mark, words, words)
                self.checks.addWidget(mark, row, 0, Qt.AlignmentFlag.AlignTop)
                self.checks.addWidget(factory.text(check.words), row, 1)

    @Slot()
    def _on_failed(self) -> None:
        """Close the dialog: the window shows the error."""
        self.reject()
