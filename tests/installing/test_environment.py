"""The environment is built whole or not at all, with small wheels from an index on this machine."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from studio.installing import environment, locks
from studio.installing.environment import InstallError, install
from studio.installing.payload import Installed, Payload, environment_python, read_installed
from tests.installing.stand_ins import BUILD, Index, index_of, make_payload

ROOT = Path(__file__).parents[2]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    with index_of(tmp_path / "wheels") as server:
        monkeypatch.setenv("UV_DEFAULT_INDEX", server.url)
        monkeypatch.setenv("UV_HTTP_RETRIES", "0")
        yield server


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return tmp_path / "data" / "Sprite Training Studio" / "program"  # with blanks, as on users' computers


@pytest.fixture
def payload(tmp_path: Path) -> Payload:
    return make_payload(tmp_path / "installer", tmp_path / "wheels")


def set_up(payload: Payload, program: Path, *, afresh: bool = False) -> Installed:
    """Install, with shares that never fall, and return the record."""
    shares = [progress.share for progress in install(payload, BUILD, program, afresh=afresh)]
    assert shares == sorted(shares) and len(shares) > 3
    installed = read_installed(program)
    assert installed is not None
    return installed


def environments(program: Path) -> list[str]:
    return sorted(path.name for path in program.glob("env-*"))


def said_by(program: Path, installed: Installed) -> str:
    python = environment_python(program / installed.folder)
    return subprocess.run([python, "-I", "-m", "studio", "word"], capture_output=True, text=True, check=True).stdout


def test_first_start_update_and_rollback(index: Index, payload: Payload, program: Path, tmp_path: Path) -> None:
    first = set_up(payload, program)
    assert (first.version, first.build, first.is_current(payload)) == ("9.0", "cu132", True)
    assert environments(program) == [first.folder]
    assert said_by(program, first) == "studio word\n"

    broken = make_payload(tmp_path / "broken", tmp_path / "wheels", version="9.1", works=False)
    with pytest.raises(InstallError, match=r"^Testing failed: ImportError: broken build$"):
        set_up(broken, program)
    assert read_installed(program) == first and environments(program) == [first.folder]

    index.requests.clear()
    newer = make_payload(tmp_path / "newer", tmp_path / "wheels", version="9.2")
    locks.hold(program / first.folder / "in-use")  # a studio is running
    second = set_up(newer, program)
    assert second.version == "9.2" and not index.requests, "everything comes from the cache"
    assert environments(program) == sorted([first.folder, second.folder])
    assert not first.is_current(newer) and second.is_current(newer)


def test_a_cut_connection_costs_only_the_cut_file(
    index: Index, payload: Payload, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CONCURRENT_DOWNLOADS", "1")  # a cut file would also stop the files that are on their way
    index.cut["torch"] = 4  # without retries, uv asks twice for a file
    for _ in range(2):
        with pytest.raises(InstallError, match=r"^The connection to the package index failed: .* kept\.$"):
            set_up(payload, program)
        assert read_installed(program) is None and environments(program) == []
    set_up(payload, program)
    assert index.requests == {"torch": 5, "torchvision": 1, "pyside6_essentials": 1}


def test_cancel_and_repair(index: Index, payload: Payload, program: Path) -> None:
    index.cut["torch"] = 1
    index.stalling.set()
    with contextlib.closing(install(payload, BUILD, program)) as steps:
        while "torch" not in index.requests:
            next(steps)
        with pytest.raises(InstallError, match="Another set-up is running"):
            set_up(payload, program)
    index.stalling.clear()
    assert environments(program) == [] and read_installed(program) is None
    assert not list((program / "cache").glob(".tmp*")), "a cut download stays on the disk"

    first = set_up(payload, program)
    index.requests.clear()
    assert set_up(payload, program, afresh=True) != first
    assert set(index.requests) == {"torch", "torchvision", "pyside6_essentials"}, "a repair trusts no cached file"


def test_an_offline_bundle_needs_no_index(payload: Payload, program: Path, tmp_path: Path) -> None:
    (tmp_path / "wheels").rename(payload.folder / "wheels")
    assert set_up(payload, program).version == "9.0"


def test_a_build_of_another_index_from_a_bundle(payload: Payload, program: Path, tmp_path: Path) -> None:
    (tmp_path / "wheels").rename(payload.folder / "wheels")
    for progress in install(payload, replace(BUILD, name="cpu", on_index=False), program):
        assert progress.text
    installed = read_installed(program)
    assert installed and installed.build == "cpu"
    lock = (program / installed.folder / "requirements.lock").read_text()
    assert "torch" not in lock and "pyside6" in lock


def test_without_a_network_nothing_is_left(payload: Payload, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://index.invalid/simple")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with pytest.raises(InstallError, match=r"^The proxy does not answer"):
        set_up(payload, program)
    monkeypatch.delenv("HTTPS_PROXY")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    with pytest.raises(InstallError, match=r"^The connection to 127\.0\.0\.1 failed"):
        set_up(payload, program)
    assert read_installed(program) is None and environments(program) == []
    assert "Connection refused" in environment.log_file(program).read_text()


def test_packages_come_through_a_proxy(
    index: Index, payload: Payload, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", index.url.removesuffix("/simple"))
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://index.invalid/simple")
    assert set_up(payload, program).version == "9.0"
    assert set(index.requests) == {"torch", "torchvision", "pyside6_essentials"}


def test_a_full_disk_is_said_before_the_download(
    payload: Payload, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "disk_free", lambda program: 1000)
    with pytest.raises(InstallError, match=r"^The disk is too full: 0.0 GB are free"):
        set_up(payload, program)
    assert environments(program) == []


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(sys.platform != "linux", reason="mounts small disks as Linux does")
@pytest.mark.parametrize("kind", ["stand-ins", "real"])
def test_a_disk_that_gets_full_on_the_way(kind: str, tmp_path: Path) -> None:
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-m", "tests.installing.full_disk"]
    done = subprocess.run([*command, tmp_path, kind], cwd=ROOT, capture_output=True, text=True, check=False)
    *failures, last = done.stdout.splitlines()
    assert done.returncode == 0 and last == "installed", done.stderr
    assert len(failures) >= (10 if kind == "stand-ins" else 1)
    assert set(failures) == {"The disk is full: free some space and try again."}


def test_a_folder_that_can_not_be_made(payload: Payload, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InstallError, match="Not a directory"):
        set_up(payload, tmp_path / "file" / "program")


def test_a_damaged_file_is_not_installed(index: Index, payload: Payload, program: Path) -> None:
    wheel = index.wheels / "torchvision-0.29.2-py3-none-any.whl"
    wheel.write_bytes((index.wheels / "torch-2.15.0-py3-none-any.whl").read_bytes())
    with pytest.raises(InstallError, match=r"^A fetched file is damaged \(torchvision==0.29.2\)"):
        set_up(payload, program)
    assert environments(program) == []


def test_the_step_is_described_by_its_last_line() -> None:
    assert environment.step_text("Testing", []) == "Testing"
    assert environment.step_text("Fetching packages", ["Resolved 54", " Downloading torch (505.9MiB)"]).endswith("MiB)")
    assert environment.step_text("Fetching packages", ["Installed 54 packages in 2s"]).startswith("Compiling packages")


def test_sizes_count_linked_files_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1234")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    assert environment.folder_size(tmp_path) == 4
    assert environment.folder_size(tmp_path / "missing") == 0
