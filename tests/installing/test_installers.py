"""`make installers` and `make bundle`: what is in the files, and the same bytes twice."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from studio.installing import menu_entry
from tests.conftest import posix
from tests.installing.stand_ins import UV, make_payload, make_wheel

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "assets/installers"

pytestmark = posix


@pytest.fixture(scope="module")
def making() -> ModuleType:
    """The script that builds the installers."""
    spec = importlib.util.spec_from_file_location("make_installers", FOLDER / "make_installers.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_payload(tmp_path / "installer", tmp_path / "wheels").wheel


@pytest.fixture
def uv(tmp_path: Path) -> Path:
    """A small stand-in for uv with its licence."""
    for name, text in (("uv", "#!/bin/sh\n"), ("LICENSE-MIT", "MIT\n")):
        (tmp_path / "fetched").mkdir(exist_ok=True)
        (tmp_path / "fetched" / name).write_text(text)
    return tmp_path / "fetched" / "uv"


def extracted(run: Path, folder: Path) -> Path:
    subprocess.run(["sh", run, "--extract", folder], check=True)
    return folder


def test_the_run_unpacks_what_the_launcher_needs(making: ModuleType, wheel: Path, uv: Path, tmp_path: Path) -> None:
    run = making.make_run(wheel, uv, tmp_path)
    folder = extracted(run, tmp_path / "with blank")
    entry = {f"{menu_entry.ID}.{kind}" for kind in ("desktop", "svg", "png")}
    files = {wheel.name, "uv", "uv-LICENSE-MIT", "start", "requirements.lock"}
    assert {path.name for path in folder.iterdir()} == files | entry
    assert (folder / "start").stat().st_mode & 0o777 == (folder / "uv").stat().st_mode & 0o777 == 0o755
    cut = tmp_path / "cut.run"
    cut.write_bytes(run.read_bytes()[:-10])
    done = subprocess.run(["sh", cut, "--extract", tmp_path / "cut"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "This file is incomplete: download it again.\n")
    assert not (tmp_path / "cut").exists()


def test_without_python_the_run_installs_nothing(making: ModuleType, wheel: Path, uv: Path, tmp_path: Path) -> None:
    run = making.make_run(wheel, uv, tmp_path)  # the stand-in for the studio has no launcher: as if Python were too old
    variables = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path / "user")}
    done = subprocess.run(["sh", run], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr
    assert not list((tmp_path / "user").rglob("installer*"))
    done = subprocess.run(["sh", run, "--uninstall"], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("Sprite Training Studio is not installed in ")


def test_the_bundle_carries_the_wheels(making: ModuleType, wheel: Path, uv: Path, tmp_path: Path) -> None:
    (tmp_path / "bundle/wheels").mkdir(parents=True)
    (tmp_path / "bundle/wheels/torch.whl").touch()
    (tmp_path / "bundle/bundle.json").write_text(json.dumps({"build": "cpu", "python": "3.11"}))
    run = making.make_run(wheel, uv, tmp_path, tmp_path / "bundle")
    assert run.name.endswith("-offline-cpu-python3.11.run")
    assert (extracted(run, tmp_path / "out") / "wheels/torch.whl").is_file()


def test_the_wheel_that_fits_this_computer(making: ModuleType) -> None:
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    names = ("a-1-py3-none-any.whl", f"a-1-{tag}-{tag}-manylinux_2_17_x86_64.whl", "a-1-cp311-cp311-win_amd64.whl")
    wheels = [{"url": f"https://index.invalid/{name}", "hashes": {"sha256": "0"}} for name in names]
    assert making.best_wheel(wheels[::2]) == f"https://index.invalid/{names[0]}#sha256=0"
    if sys.platform == "linux":
        assert making.best_wheel(wheels) == f"https://index.invalid/{names[1]}#sha256=0"


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="Debian's packages are built on Debian")
def test_the_deb_and_the_same_bytes_twice(
    making: ModuleType, wheel: Path, uv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1767225600")
    made = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made.append([making.make_deb(wheel, uv, tmp_path / name), making.make_run(wheel, uv, tmp_path / name)])
        wheel.touch()
        uv.chmod(0o700)
    assert [path.read_bytes() for path in made[0]] == [path.read_bytes() for path in made[1]]

    deb = made[0][0]
    assert deb.name == "sprite-training-studio_9.0_amd64.deb"
    listed = subprocess.run(["dpkg-deb", "--contents", deb], capture_output=True, text=True, check=True).stdout
    assert "./usr/bin/studio -> /opt/sprite-training-studio/start" in listed
    assert f"./usr/share/applications/{menu_entry.ID}.desktop" in listed and "2026-01-01 00:00" in listed
    assert set(re.findall(r"\b(\w+/\w+)\b +\d+ 20", listed)) == {"root/root"}
    fields = subprocess.run(["dpkg-deb", "--field", deb], capture_output=True, text=True, check=True).stdout
    assert "Version: 9.0\n" in fields and "python3-tk" in fields and "libxcb-cursor0" in fields
    assert not re.search(r"\b[A-Z]+_[A-Z]+\b", fields), "every placeholder is filled"
    checks = subprocess.run(["sh", "-n", *sorted((FOLDER / "debian").glob("p*rm"))], check=False)
    assert checks.returncode == 0


def test_qt_gets_the_libraries_that_the_tests_install(making: ModuleType) -> None:
    script = (ROOT / ".ci/install-qt-libraries").read_text(encoding="utf-8")
    found = re.search(r'^packages="(.*)"', script, re.MULTILINE)
    assert found and set(found[1].split()) <= set(making.QT_LIBRARIES)


def test_the_menu_entry_can_repair(making: ModuleType) -> None:
    entry = making.desktop_entry()
    assert "\nActions=setup;repair;\n" in entry and "Exec=sprite-training-studio --repair\n" in entry
    assert entry.count("Exec=sprite-training-studio") == 3


def test_the_locked_uv_is_the_one_that_is_tried() -> None:
    locked = re.search(r"^uv==(\S+)", (FOLDER / "uv.lock").read_text(encoding="utf-8"))
    said = subprocess.run([UV, "--version"], capture_output=True, text=True, check=True).stdout
    assert locked and locked[1].split(".")[:2] == said.split()[1].split(".")[:2]


def test_uv_comes_out_of_its_wheel(making: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files: dict[str, str | bytes] = {"uv-1.data/scripts/uv": "program", "uv-1.data/scripts/uvx": "other"}
    files |= {"uv-1.dist-info/licenses/LICENSE-MIT": "licence"}
    monkeypatch.setattr(making, "_pip_download", lambda words, folder: make_wheel(folder, "uv", "1", files))
    uv = making.fetch_uv("linux", tmp_path)
    assert uv.read_text() == "program" and (tmp_path / "LICENSE-MIT").read_text() == "licence"
    assert not (tmp_path / "uvx").exists()
