"""The window of the first start, on a virtual screen, with small wheels."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.installing import setup
from studio.installing.payload import read_installed
from studio.installing.setup import Setup
from studio.installing.torch_builds import Computer
from tests.installing.stand_ins import index_of, make_payload

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def _screen() -> Iterator[None]:
    """Run a virtual X server, which chooses a free display and ends with this process.

    Tk keeps its connection after the last window, and ends the process if the server ends first.
    """
    reading, writing = os.pipe()
    command = ["Xvfb", "-terminate", "-displayfd", str(writing), "-screen", "0", "1280x800x24"]
    subprocess.Popen(command, pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading) as number, pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISPLAY", f":{number.readline().strip()}")
        yield


def press_soon(window: object, name: str) -> None:
    """Press a button of the window when its loop runs."""
    root, button = vars(window)["_root"], vars(window)[name]
    root.after(50, button.invoke)


def test_error_try_again_and_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from studio.installing.window import SetupWindow

    monkeypatch.setenv("GTK_THEME", "Adwaita:dark")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    program = tmp_path / "program"
    payload = make_payload(tmp_path / "installer", tmp_path / "wheels")
    window = SetupWindow(Setup(payload, program, Computer("Linux", "x86_64"), wanted="cu132"))
    root, problem, go = (vars(window)[name] for name in ("_root", "_problem", "_go"))
    with index_of(tmp_path / "wheels") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
        press_soon(window, "_go")
        seen: list[str] = []

        def watch() -> None:
            if go["text"] == "Try again" and not seen:
                seen.append(problem["text"])
                os.environ["UV_DEFAULT_INDEX"] = index.url
                go.invoke()
            root.after(50, watch)

        root.after(60, watch)
        assert window.ask() == setup.INSTALLED
    assert seen == [
        "The connection to 127.0.0.1 failed: check the network and try again. What has been fetched is kept."
    ]
    assert read_installed(program) is not None


def test_cancel_and_close(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from studio.installing.window import SetupWindow

    program = tmp_path / "program"
    payload = make_payload(tmp_path / "installer", tmp_path / "wheels")
    with index_of(tmp_path / "wheels") as index:
        monkeypatch.setenv("UV_DEFAULT_INDEX", index.url)
        index.cut["torch"] = 9
        index.stalling.set()
        window = SetupWindow(Setup(payload, program, Computer("Linux", "x86_64"), wanted="cu132"))
        root, later, problem = (vars(window)[name] for name in ("_root", "_later", "_problem"))
        press_soon(window, "_go")
        seen: list[str] = []

        def watch() -> None:
            if later["text"] == "Cancel" and index.requests["torch"]:
                later.invoke()
                seen.append(problem["text"])
                later.invoke()  # now Close
            else:
                root.after(50, watch)

        root.after(100, watch)
        assert window.ask() == setup.CLOSED
    assert seen == ["Cancelled. What has been fetched is kept."]
    assert read_installed(program) is None and not list(program.glob("env-*"))
