"""The app for macOS, as far as Linux can tell: its files, and its script with stand-ins for uv and osascript."""

from __future__ import annotations

import os
import plistlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from macos_app import make_app

from tests.conftest import posix
from tests.installing.stand_ins import make_wheel

LAUNCHER = "import sys\ndef main():\n    print(sys.argv[1:])\n    return 3\n"
UV = """#!/bin/sh
echo "$@" >> "$HOME/uv-calls"
[ -e "$HOME/online" ] || { echo 'error: dns error, "quoted"' >&2; exit 2; }
python="$UV_PYTHON_INSTALL_DIR/cpython-3.13.9-macos-aarch64-none/bin/python3.13"
mkdir -p "$(dirname "$python")"
ln -s "$PYTHON_HERE" "$python"
"""
# Answers each dialog with the next line of $HOME/answers, and keeps the dialog's text.
OSASCRIPT = """#!/bin/sh
while [ "$1" = -e ]; do shift 2; done
echo "$1" >> "$HOME/said"
answer=$(head -n 1 "$HOME/answers")
sed -i 1d "$HOME/answers"
[ "$answer" = yes ] && touch "$HOME/online"
[ "$answer" != cancel ]
"""

pytestmark = posix


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    payload = tmp_path / "payload"
    files = {"studio/__init__.py": "", "studio/installing/__init__.py": "", "studio/installing/launcher.py": LAUNCHER}
    make_wheel(payload, "sprite_training_studio", "9.0", files)
    (payload / "uv").write_text(UV)
    return make_app(payload, "9.0", tmp_path, 1767225600)


def test_the_parts_of_the_app(archive: Path, tmp_path: Path) -> None:
    first = archive.read_bytes()
    (tmp_path / "payload/uv").touch()
    assert make_app(tmp_path / "payload", "9.0", tmp_path, 1767225600).read_bytes() == first
    root = "Sprite Training Studio.app/Contents"
    with zipfile.ZipFile(archive) as file:
        modes = {info.filename: info.external_attr >> 16 & 0o777 for info in file.infolist()}
        about = plistlib.loads(file.read(f"{root}/Info.plist"))
        assert b"PYTHON_VERSION" not in file.read(f"{root}/Resources/start")
    programs = {"MacOS/Sprite Training Studio", "Resources/start", "Resources/uv"}
    assert {name.removeprefix(f"{root}/") for name, mode in modes.items() if mode == 0o755} == programs
    assert f"{root}/MacOS/{about['CFBundleExecutable']}" in modes and about["CFBundleVersion"] == "9.0"
    assert f"{root}/Resources/{about['CFBundleIconFile']}" in modes


def test_the_script_fetches_python_then_starts(archive: Path, tmp_path: Path) -> None:
    home, commands = tmp_path / 'Jörg Жук & O\'Brien "$HOME" `x`', tmp_path / "commands"
    home.mkdir()
    commands.mkdir()
    (commands / "osascript").write_text(OSASCRIPT)
    (commands / "osascript").chmod(0o755)
    subprocess.run([sys.executable, "-m", "zipfile", "-e", archive, home], check=True)
    contents = home / "Sprite Training Studio.app/Contents"
    main = contents / "MacOS/Sprite Training Studio"
    for program in (main, contents / "Resources/start", contents / "Resources/uv"):
        program.chmod(0o755)
    variables = {
        **os.environ,
        "HOME": str(home),
        "PATH": f"{commands}:{os.environ['PATH']}",
        "PYTHON_HERE": sys.executable,
    }

    def start(answers: str) -> subprocess.CompletedProcess[str]:
        (home / "answers").write_text(answers)
        return subprocess.run([main, "a b"], env=variables, capture_output=True, text=True, check=False)

    assert start("cancel\n").returncode == 1 and not (home / "uv-calls").exists()
    assert start("no network\ncancel\n").returncode == 1
    said = (home / "said").read_text()
    assert "fetches Python 3.13" in said and 'error: dns error, "quoted"' in said
    assert not (home / "Library/Application Support/Sprite Training Studio/program/python/cache").exists()
    started = start("no network\nyes\n")
    assert (started.returncode, started.stdout) == (3, "['a b']\n")
    (home / "answers").unlink()
    assert subprocess.run([main], env=variables, check=False).returncode == 3, "the second start asks nothing"
