"""The installer for Windows: every path is quoted, the same bytes twice, and it installs and uninstalls under wine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import windows_setup
from windows_setup import PYTHON, add_files, file_list, make_setup

from studio.installing.payload import extended_path
from tests.installing.stand_ins import make_wheel

SCRIPT = (windows_setup.HERE / "windows/setup.nsi").read_text(encoding="utf-8")
USERS = ["Jörg Жук & Söhne 100%", "O'Brien", "a^b!c;d", "山田 太郎", "x" * 240]
LAUNCHER = "import sys\ndef main():\n    print(sys.argv[1:])\n    return 3\n"
needs_makensis = pytest.mark.skipif(not shutil.which("makensis"), reason="Debian's nsis builds the installer")


@pytest.fixture
def payload(tmp_path: Path) -> Path:
    """The files of an installer, with a launcher that prints its arguments."""
    folder = tmp_path / "payload"
    files = {"studio/__init__.py": "", "studio/installing/__init__.py": "", "studio/installing/launcher.py": LAUNCHER}
    make_wheel(folder, "sprite_training_studio", "9.0", files)
    for name in ("uv.exe", "requirements.lock"):
        (folder / name).write_text(name)
    add_files(folder)
    return folder


def words_of(command: str) -> list[str]:
    """Split a command line as Windows does. No word of ours has a quote inside."""
    return [quoted or plain for quoted, plain in re.findall(r'"([^"]*)"|(\S+)', command)]


@pytest.mark.parametrize("user", USERS)
def test_paths_in_commands_stay_whole(user: str) -> None:
    folder = f"C:\\Users\\{user}\\AppData\\Local\\Programs\\Sprite Training Studio"
    python = f"{folder}\\python\\cpython-3.13.9-windows-x86_64-none"
    commands = [text for text in re.findall(r" '([^'\n]*)'", SCRIPT) if "$INSTDIR" in text and "::" not in text]
    assert len(commands) == 7
    for command in commands:
        filled = command.replace("$INSTDIR", folder).replace("$Python", python).replace("${PYTHON}", PYTHON)
        words = [word for word in words_of(filled) if word.startswith("C:")]
        assert words and all(Path(word.replace("\\", "/")).suffix in (".exe", ".pyw") for word in words)
        assert sum(command.count(name) for name in ("$INSTDIR", "$Python")) == len(words)
    bare = [line for line in SCRIPT.splitlines() if re.search(r"(?<![\"'\\])\$(INSTDIR|LOCALAPPDATA|SMPROGRAMS)", line)]
    assert all(re.search(r'InstallDir|MessageBox|t "\$', line) or '"' in line for line in bare)


def test_the_batch_file_holds_no_path() -> None:
    (line,) = re.findall(r"FileWrite \$0 '(.*)\$\\r\$\\n'", SCRIPT)
    assert line == '@"%~dp0python\\$PythonName\\python.exe" -I "%~dp0start.pyw" %*'


@pytest.mark.parametrize("user", ["Jörg Жук & Söhne 100%", "O'Brien"])
def test_the_script_finds_its_wheel(payload: Path, tmp_path: Path, user: str) -> None:
    moved = payload.rename(tmp_path / user)
    command = [sys.executable, "-I", str(moved / "start.pyw"), "train", "my sprites"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "['train', 'my sprites']\n")


def test_what_is_packed_is_deleted(payload: Path) -> None:
    text = file_list(payload)
    deleted = re.findall(r'Delete "\$INSTDIR\\(.*)"', text)
    assert deleted == [Path(path).name for path in re.findall(r'File "(.*)"', text)]
    assert {"uv.exe", "requirements.lock", "start.pyw", "app.ico"} < set(deleted)
    assert 'RMDir /r "$INSTDIR"\n' not in SCRIPT, "the folder may hold files of the user"


def test_paths_of_any_length_can_be_deleted() -> None:
    assert extended_path(r"C:\Users\Jörg Жук\a") == r"\\?\C:\Users\Jörg Жук\a"
    assert extended_path(r"\\server\share\a") == r"\\?\UNC\server\share\a"
    assert extended_path(extended_path(r"C:\a")) == r"\\?\C:\a"


@needs_makensis
def test_the_same_bytes_twice(payload: Path, tmp_path: Path) -> None:
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made.append(make_setup(payload, "9.0", tmp_path / name, 1767225600))
        (payload / "uv.exe").touch()
    assert made[0].name == "sprite-training-studio-9.0-windows-x86_64.exe"
    assert made[0].read_bytes() == made[1].read_bytes()


def in_wine(variables: Mapping[str, str], *words: str | Path) -> int:
    """Run a program in wine on a screen of its own, and wait for everything that the program started."""
    command = ["xvfb-run", "-a", "wine", *map(str, words)]
    code = subprocess.run(command, env=variables, timeout=300, check=False, capture_output=True).returncode
    subprocess.run(["wineserver", "-w"], env=variables, timeout=300, check=False)
    return code


@pytest.mark.slow
@pytest.mark.timeout(900)
@needs_makensis
@pytest.mark.skipif(not shutil.which("wine") or not shutil.which("xvfb-run"), reason="wine runs the installer")
def test_install_update_and_uninstall_in_wine(payload: Path, tmp_path: Path) -> None:
    """A stand-in replaces uv and the Python that uv fetches: wine 8 lacks a library that uv needs."""
    stand_in = Path(__file__).with_name("stand_in.nsi")
    command = ["makensis", "-V1", "-INPUTCHARSET", "UTF8", f"-DOUT={payload / 'uv.exe'}", str(stand_in)]
    subprocess.run(command, check=True)
    setup = make_setup(payload, "9.0", tmp_path, 1767225600)
    calls = tmp_path / "calls.txt"
    variables = {**os.environ, "WINEPREFIX": str(tmp_path / "wine"), "WINEARCH": "win64", "WINEDEBUG": "-all"}
    variables["STAND_IN_LOG"] = "Z:" + str(calls).replace("/", "\\")
    in_wine(variables, "winecfg", "-v", "win10")
    (user,) = (path for path in (tmp_path / "wine/drive_c/users").iterdir() if path.name != "Public")
    folder = user / "AppData/Local/Programs/Sprite Training Studio"
    windows = "C:" + str(folder).partition("drive_c")[2].replace("/", "\\")
    shortcut = user / "AppData/Roaming/Microsoft/Windows/Start Menu/Programs/Sprite Training Studio.lnk"
    data = user / "AppData/Local/Sprite Training Studio"
    for name in ("program/env-1/torch", "runs/first/run.json"):
        (data / name).parent.mkdir(parents=True)
        (data / name).touch()

    assert in_wine({**variables, "STAND_IN_FAILS": "1"}, setup, "/S") == 1
    assert not [path for path in folder.rglob("*") if path.is_file()] and not shortcut.exists()

    assert in_wine(variables, setup, "/S") == 0
    assert {path.name for path in payload.iterdir()} <= {path.name for path in folder.iterdir()}
    assert shortcut.exists()
    (folder / "sprite_training_studio-9.0-py3-none-any.whl").rename(
        folder / "sprite_training_studio-8.0-py3-none-any.whl"
    )
    (folder / "mine.txt").touch()
    asked = calls.read_bytes().count("uv.exe".encode("utf-16-le"))
    assert in_wine(variables, setup, "/S") == 0
    assert [path.name for path in folder.glob("*.whl")] == ["sprite_training_studio-9.0-py3-none-any.whl"]
    assert calls.read_bytes().count("uv.exe".encode("utf-16-le")) == asked, "an update fetches no Python"
    assert in_wine(variables, "cmd", "/c", "call", f"{windows}\\studio.cmd", "train", "my sprites") == 0

    assert in_wine(variables, folder / "uninstall.exe", "/S") == 0
    said = calls.read_bytes().decode("utf-16-le")
    assert 'start.pyw" train "my sprites"' in said and 'start.pyw" --uninstall --yes' in said
    assert [path.name for path in folder.iterdir()] == ["mine.txt"] and not shortcut.exists()
    assert not (data / "program").exists() and (data / "runs/first/run.json").exists()
