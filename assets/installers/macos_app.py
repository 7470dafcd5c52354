"""Build the app for macOS: a folder in a zip archive. Never tried on a Mac."""

from __future__ import annotations

import plistlib
import time
import zipfile
from pathlib import Path

from windows_setup import PYTHON

HERE = Path(__file__).resolve().parent
_APP = "Sprite Training Studio"
# Finder starts the first file; the launcher expects its own script beside the wheel.
_MAIN = '#!/bin/sh\nexec "$(dirname "$0")/../Resources/start" "$@"\n'
_PROGRAMS = ("start", "uv", _APP)


def start_script() -> str:
    """Return the script `start` for the fetched version of Python."""
    return (HERE / "macos/start").read_text(encoding="utf-8").replace("PYTHON_VERSION", PYTHON)


def property_list(version: str) -> bytes:
    """Return Info.plist. PyTorch's wheels need macOS 14 on Apple silicon."""
    values = {
        "CFBundleDisplayName": _APP,
        "CFBundleExecutable": _APP,
        "CFBundleIconFile": "app.icns",
        "CFBundleIdentifier": "studio.spritetraining.SpriteTrainingStudio",
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundleName": _APP,
        "CFBundlePackageType": "APPL",
        "CFBundleShortVersionString": version,
        "CFBundleVersion": version,
        "LSApplicationCategoryType": "public.app-category.graphics-design",
        "LSArchitecturePriority": ["arm64"],
        "LSMinimumSystemVersion": "14.0",
        "NSHighResolutionCapable": True,
    }
    return plistlib.dumps(values)


def make_app(payload: Path, version: str, out: Path, epoch: int) -> Path:
    """Write the zip archive of the app from a payload. epoch: the time of all files in the archive."""
    contents: dict[str, bytes] = {
        "Info.plist": property_list(version),
        f"MacOS/{_APP}": _MAIN.encode(),
        "Resources/app.icns": (HERE.parents[1] / "assets/icons/app.icns").read_bytes(),
        "Resources/start": start_script().encode(),
    }
    contents |= {f"Resources/{path.name}": path.read_bytes() for path in payload.iterdir()}
    path = out / f"sprite-training-studio-{version}-macos-arm64.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents):
            info = zipfile.ZipInfo(f"{_APP}.app/Contents/{name}", time.gmtime(epoch)[:6])
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3  # Unix: permissions count
            info.external_attr = (0o100755 if name.rpartition("/")[2] in _PROGRAMS else 0o100644) << 16
            archive.writestr(info, contents[name])
    return path
