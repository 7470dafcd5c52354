"""The launcher sets up once, then starts the studio; it updates, repairs and uninstalls."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from studio.installing import launcher, locks, menu_entry, setup, torch_builds
from studio.installing.payload import Installed, Payload, environment_python, program_folder, sha256, write_installed
from studio.installing.setup import Setup
from studio.installing.torch_builds import Card, Computer
from tests.conftest import posix
from tests.installing.stand_ins import make_payload

ROOT = Path(__file__).parents[2]
RTX = Computer("Linux", "x86_64", (Card("nvidia", "GeForce RTX 3060", "580.95", "8.6"),))


@pytest.fixture
def payload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Payload:
    monkeypatch.setenv("STUDIO_PAYLOAD", str(tmp_path / "installer"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setattr(torch_builds, "detect", lambda: RTX)
    return make_payload(tmp_path / "installer", tmp_path / "wheels")


def record(payload: Payload, *, wheel: str = "") -> Path:
    """Stand for an installed environment; its Python is the running one."""
    folder = program_folder() / "env-1"
    python = environment_python(folder)
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    installed = Installed("env-1", "8.0", "cu132", wheel or sha256(payload.wheel), sha256(payload.lock))
    write_installed(program_folder(), installed)
    return python


def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Record the studio's commands instead of running them."""
    commands: list[list[str]] = []

    def become(command: list[str], variables: dict[str, str]) -> int:
        assert variables["STUDIO_LAUNCHER"].endswith("start")
        commands.append(command)
        return 0

    monkeypatch.setattr(launcher, "_become", become)
    return commands


def test_without_tkinter_the_terminal_asks(payload: Payload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tkinter", None)
    assert launcher.main([]) == 1


def test_without_agreement_nothing_is_fetched(payload: Payload, capsys: pytest.CaptureFixture[str]) -> None:
    assert launcher.main([]) == 1
    said = capsys.readouterr().out
    assert "Set up Sprite Training Studio 9.0\nFor GeForce RTX 3060." in said
    assert "About 3.2 GB are fetched from the Python package index. The disk needs 6.5 GB" in said
    assert f"Agree with: {payload.folder / 'start'} --setup --yes" in said
    assert not program_folder().exists()


def test_first_start_in_the_terminal(
    payload: Payload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "wheels").rename(payload.folder / "wheels")
    assert launcher.main(["--setup", "--yes"]) == 0
    assert "Nothing is fetched: this bundle has all packages." in capsys.readouterr().out
    commands = started(monkeypatch)
    launcher.main(["train", "sprites"])
    assert commands[0][1:] == ["-m", "studio", "train", "sprites"]


def test_an_older_version_starts_while_an_update_waits(payload: Payload, monkeypatch: pytest.MonkeyPatch) -> None:
    python = record(payload, wheel="older")
    commands = started(monkeypatch)
    launcher.main(["runs"])
    assert commands == [[str(python), "-m", "studio", "runs"]]


def test_another_build_is_fetched_whole(payload: Payload) -> None:
    record(payload)
    wheel = program_folder() / "cache/wheel"
    wheel.parent.mkdir()
    with wheel.open("wb") as file:
        file.truncate(6 * 10**9)
    found = Setup(payload, program_folder(), RTX)
    said = {build.name: found.describe(build) for build in found.builds}
    assert "0.3 GB are fetched" in said["cu132"] and "3.2 GB are fetched" in said["cu126"]


def test_an_environment_that_was_in_use_is_deleted_later(payload: Payload, monkeypatch: pytest.MonkeyPatch) -> None:
    record(payload)
    started(monkeypatch)
    (program_folder() / "env-old/lib").mkdir(parents=True)
    with locks.exclusive(program_folder() / "lock"):  # a set-up is building an environment
        launcher.main(["runs"])
        assert (program_folder() / "env-old").exists()
    launcher.main(["runs"])
    assert [path.name for path in program_folder().glob("env-*")] == ["env-1"]


def test_a_studio_that_cannot_start_offers_a_repair(payload: Payload, monkeypatch: pytest.MonkeyPatch) -> None:
    record(payload)
    offers: list[Setup] = []
    monkeypatch.setattr(launcher, "_in_a_terminal", lambda: False)

    def decline(found: Setup, words: list[str]) -> str:
        offers.append(found)
        return "closed"

    monkeypatch.setattr(launcher, "_offer", decline)
    monkeypatch.setattr(launcher, "_command", lambda installed, words, program: [sys.executable, "-Ic", "1 / 0"])
    assert launcher.main([]) == 1
    (offer,) = offers
    assert (offer.verb, offer.problem) == ("Repair", "The studio stopped: ZeroDivisionError: division by zero")
    assert offer.builds and "3.2 GB are fetched" in offer.describe(offer.builds[0])


def test_uninstall_keeps_runs(payload: Payload, capsys: pytest.CaptureFixture[str]) -> None:
    record(payload)
    run = program_folder().parent / "runs" / "first" / "run.json"
    run.parent.mkdir(parents=True)
    run.touch()
    assert launcher.main(["--uninstall"]) == 1 and program_folder().exists()
    assert launcher.main(["--uninstall", "--yes"]) == 0 and not program_folder().exists()
    assert run.exists() and "runs and settings" in capsys.readouterr().out


def test_an_interrupted_uninstall_can_be_repeated(payload: Payload, monkeypatch: pytest.MonkeyPatch) -> None:
    record(payload)
    (program_folder() / "installer").mkdir()
    deleted: list[str] = []
    monkeypatch.setattr(setup, "delete_folder", lambda folder: deleted.append(folder.name))
    setup.uninstall(program_folder())
    assert deleted == ["cache", "env-1", "program"], "the installer's files go last"


@posix
@pytest.mark.parametrize("folder", ["plain", 'with blank, "quotes" and 100 %'])
def test_menu_entry_of_a_user(payload: Payload, tmp_path: Path, folder: str) -> None:
    place = tmp_path / folder
    payload.folder.rename(place)
    entry = (ROOT / f"assets/desktop/{menu_entry.ID}.desktop").read_text(encoding="utf-8")
    (place / f"{menu_entry.ID}.desktop").write_text(entry, encoding="utf-8")
    for ending in ("svg", "png"):
        (place / f"{menu_entry.ID}.{ending}").touch()
    own = tmp_path / "user/.local/bin/studio"
    own.parent.mkdir(parents=True)
    own.touch()  # a program of the user
    menu_entry.register(place)
    written = (tmp_path / f"data/applications/{menu_entry.ID}.desktop").read_text(encoding="utf-8")
    command = next(line for line in written.splitlines() if line.startswith("Exec=")).removeprefix("Exec=")
    unescaped = command.replace("\\\\", "\\").replace("%%", "%")  # as the Desktop Entry Specification says
    assert shlex.split(unescaped) == [str(place / "start"), "%F"]
    link = own.with_name("sprite-training-studio")
    assert link.resolve() == place / "start" and not own.is_symlink()
    menu_entry.unregister(tmp_path / "other")
    assert link.is_symlink()
    menu_entry.unregister(place)
    assert not link.is_symlink() and own.exists()
    assert not list((tmp_path / "data").rglob(f"{menu_entry.ID}.*"))


@posix
def test_the_script_starts_the_launcher_from_the_wheel(payload: Payload, tmp_path: Path) -> None:
    with zipfile.ZipFile(payload.wheel, "w") as wheel:
        for name in (
            "__init__",
            "locks",
            "torch_builds",
            "payload",
            "failures",
            "environment",
            "setup",
            "menu_entry",
            "launcher",
        ):
            wheel.write(ROOT / f"studio/installing/{name}.py", f"studio/installing/{name}.py")
        wheel.writestr("studio/__init__.py", "")
    link = tmp_path / "command"
    link.symlink_to(payload.folder / "start")
    (payload.folder / "start").chmod(0o755)
    variables = {name: value for name, value in os.environ.items() if name != "STUDIO_PAYLOAD"}
    variables["PYTHONPATH"] = str(tmp_path / "nowhere")
    done = subprocess.run([link, "--uninstall"], capture_output=True, text=True, env=variables, check=False)
    assert (done.returncode, done.stdout) == (0, "Deleted.\n")


def test_what_can_not_work_is_said(payload: Payload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "program"
    mac = Setup(payload, program, Computer("Darwin", "x86_64"))
    assert mac.suggested is None and mac.why_not(None) == "PyTorch has no build for this system."
    (payload.folder / "bundle.json").write_text('{"build": "cpu", "python": "3.99"}')
    bundle = Setup(payload, program, RTX)
    assert [build.name for build in bundle.builds] == ["cpu"]
    assert bundle.why_not(bundle.suggested).startswith("This bundle is for Python 3.99; this computer has")
    (payload.folder / "bundle.json").unlink()
    monkeypatch.setattr("studio.installing.environment.disk_free", lambda program: 10**9)
    found = Setup(payload, program, RTX, wanted="cpu")
    assert found.suggested and found.suggested.name == "cpu"
    assert found.why_not(found.suggested) == "The disk is too full: 1.0 GB are free, 1.5 GB are needed."
