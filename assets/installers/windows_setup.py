"""Build the installer for Windows with makensis, on Linux."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from PIL import Image

HERE = Path(__file__).resolve().parent
PYTHON = "3.13"  # what uv fetches where the system brings no Python


def add_files(payload: Path) -> None:
    """Add the script that starts the studio, and the icon, to the payload."""
    for source in (HERE / "windows/start.pyw", HERE.parents[1] / "assets/icons/app.ico"):
        shutil.copyfile(source, payload / source.name)


def file_list(payload: Path) -> str:
    """Return an NSIS script that packs the payload's files, or with DELETE defined deletes them."""
    names = sorted(path.name for path in payload.iterdir())
    delete = [f'  Delete "$INSTDIR\\{name}"' for name in names]
    pack = [f'  File "{payload / name}"' for name in names]
    return "\n".join(["!ifdef DELETE", *delete, "!else", *pack, "!endif", ""])


def draw_picture(path: Path) -> None:
    """Draw the picture of the last page: the icon on its own dark colour."""
    icon = (
        Image.open(HERE.parents[1] / "assets/icons/app.png")
        .convert("RGBA")
        .resize((128, 128), Image.Resampling.NEAREST)
    )
    picture = Image.new("RGB", (164, 314), (40, 44, 66))
    picture.paste(icon, (18, 93), icon)
    picture.save(path)


def make_setup(payload: Path, version: str, out: Path, epoch: int) -> Path:
    """Build the installer from a payload with the scripts. epoch: the time that the installer says it was made."""
    path = out / f"sprite-training-studio-{version}-windows-x86_64.exe"
    numbers = ".".join([*re.findall(r"\d+", version), "0", "0", "0", "0"][:4])
    with tempfile.TemporaryDirectory() as name:
        files = Path(name) / "files.nsh"
        files.write_text(file_list(payload), encoding="utf-8")
        draw_picture(Path(name) / "picture.bmp")
        values = {
            "VERSION": version,
            "NUMBERS": numbers,
            "FOLDER": payload,
            "FILES": files,
            "PYTHON": PYTHON,
            "PICTURE": Path(name) / "picture.bmp",
            "OUT": path,
        }
        words = [f"-D{key}={value}" for key, value in values.items()]
        command = ["makensis", "-V2", "-WX", "-INPUTCHARSET", "UTF8", *words, str(HERE / "windows/setup.nsi")]
        subprocess.run(command, check=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})
    return path
