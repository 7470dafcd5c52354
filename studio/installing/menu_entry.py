"""The entry in the desktop's menu and the commands in ~/.local/bin, for the self-extracting installer on Linux."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from studio.installing.payload import data_folder

ID = "studio.spritetraining.SpriteTrainingStudio"
COMMANDS = ("studio", "sprite-training-studio")


def register(payload: Path) -> None:
    """Write the menu entry and icons for this user, and link the commands. payload: folder with the script `start`."""
    entry = (payload / f"{ID}.desktop").read_text(encoding="utf-8")
    start = payload / "start"
    # In a menu entry, these characters need a backslash inside quotes, and a backslash needs four.
    quoted = str(start).replace("\\", "\\\\\\\\").replace('"', '\\\\"').replace("$", "\\\\$").replace("`", "\\\\`")
    quoted = quoted.replace("%", "%%")
    lines = []
    for line in entry.splitlines():
        key, separator, value = line.partition("=sprite-training-studio")
        lines.append(f'{key}="{quoted}"{value}' if separator and key == "Exec" else line)
    _write(_entry(), "\n".join(lines) + "\n")
    for size, name in (("scalable", f"{ID}.svg"), ("256x256", f"{ID}.png")):
        icon = _icon(size, name)
        icon.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(payload / name, icon)
    for link in _links():
        if link.is_symlink() or not link.exists():  # never replace a program of the user
            link.parent.mkdir(parents=True, exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(start)


def unregister(payload: Path) -> None:
    """Delete the menu entry, icons and links that `register` wrote for this payload."""
    mine = [link for link in _links() if link.is_symlink() and link.readlink() == payload / "start"]
    if not mine:  # the system's package manager has installed the payload
        return
    for path in (*mine, _entry(), _icon("scalable", f"{ID}.svg"), _icon("256x256", f"{ID}.png")):
        with contextlib.suppress(OSError):
            path.unlink()


def _entry() -> Path:
    return data_folder() / "applications" / f"{ID}.desktop"


def _icon(size: str, name: str) -> Path:
    return data_folder() / "icons" / "hicolor" / size / "apps" / name


def _links() -> list[Path]:
    return [Path.home() / ".local" / "bin" / name for name in COMMANDS]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
