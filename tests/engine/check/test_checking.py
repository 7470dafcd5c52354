"""The system check as a whole: child processes that hang or die, names and paths, packages, folders, and speeds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from studio.core import limits, paths, worker_process
from studio.core.events import Event, Progress
from studio.engine.check import checking, computer_part, speeds, torch_part
from studio.engine.check.checking import Part, check_system
from studio.engine.check.findings import BuildChosen, CheckDone, Finding, anonymous, report, summary, without_paths
from studio.engine.check.torch_change import available_builds, change_commands, commands_for, setup_command
from studio.engine.devices.types import Device, DeviceMeasured
from studio.installing.torch_builds import builds

GB = 10**9
CPU = Device("cpu", "cpu", "A processor", 8 * GB, 16 * GB, threads=2)
FAKES = "tests.engine.check.fake_parts"


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STUDIO_HOME", str(tmp_path / "home"))


def test_a_part_that_hangs_dies_or_fails_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = (
        Part("Stuck", f"{FAKES}:hang", 1.0, "Restart.", is_needed=True),
        Part("Dead", f"{FAKES}:die", 20.0, "Update the driver."),
        Part("Failed", f"{FAKES}:fail", 20.0, "Update."),
        Part("Slow", f"{FAKES}:compute", 0.5, "Wait."),
    )
    monkeypatch.setattr(checking, "PARTS", parts)
    monkeypatch.setattr(worker_process, "can_start", lambda: True)
    stuck, first, dead, failed, slow, done = [each for each in check_system() if not isinstance(each, Progress)]
    assert isinstance(stuck, Finding) and "No answer for 1 s" in stuck.text and stuck.advice == "Restart."
    assert isinstance(first, Finding) and first.state == "good"
    assert isinstance(dead, Finding) and dead.state == "problem" and "ended unexpectedly" in dead.text
    assert isinstance(failed, Finding) and "ZeroDivisionError" in failed.text
    assert isinstance(slow, Finding) and slow.state == "good"
    assert done == CheckDone(can_train=False, problems=3, notices=0)


def test_closing_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    import psutil

    monkeypatch.setattr(checking, "PARTS", (Part("Stuck", f"{FAKES}:hang", 60.0, ""),))
    before = set(psutil.Process().children())
    events = check_system()
    next(events)
    (child,) = set(psutil.Process().children()) - before
    events.close()
    psutil.wait_procs([child], timeout=5)
    assert not child.is_running()


def test_all_parts_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(device: Device) -> Iterator[Event]:
        yield DeviceMeasured(device.id, "fp32", 12.0, 0.1, 5.0)

    computer, _, torch = checking.PARTS  # Qt's part needs a display
    monkeypatch.setattr(checking, "PARTS", (computer, torch))
    monkeypatch.setattr(worker_process, "can_start", lambda: False)
    monkeypatch.setattr(torch_part, "_training_steps", steps)
    events = list(check_system())
    found = {event.check: event for event in events if isinstance(event, Finding)}
    names = {"python", "packages", "memory", "folder", "runs", "pytorch", "graphics-card", "training-step"}
    assert names <= set(found)
    assert any(isinstance(event, BuildChosen) and event.installed for event in events)
    assert isinstance(events[-1], CheckDone) and events[-1].can_train
    text = report(found.values())
    assert str(Path.home()) not in text and str(paths.home()) not in text


def test_torch_that_cannot_be_loaded_prevents_training(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        found = [event for event in torch_part.check_torch() if isinstance(event, Finding)]
    assert [(each.prevents_training, each.changes_build) for each in found] == [(True, True)]


def test_no_working_device_prevents_training(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(device: Device) -> Iterator[Event]:
        yield Progress(0, 0, "steps")
        raise RuntimeError("CUDA error: an illegal instruction\nmore")

    monkeypatch.setattr(torch_part, "_training_steps", steps)
    gpu = Device("cuda:0", "cuda", "A card", GB, GB)
    found = [event for event in torch_part._check_steps((gpu, CPU)) if isinstance(event, Finding)]
    assert [each.prevents_training for each in found] == [False, True]
    assert "illegal instruction." in found[0].text and "more" not in found[0].text


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("/home/anna/x/libtorch.so: undefined", "~/x/libtorch.so: undefined"),
        ("can't open '/data/anna/venv/lib/libtorch.so'", "can't open '…/libtorch.so'"),
        ("C:\\Users\\Anna\\venv\\torch.dll is missing", "…\\torch.dll is missing"),
        ("\\\\server\\share\\anna\\torch.dll", "…\\torch.dll"),
        ("no permission for /dev/kfd, see /usr/lib/x", "no permission for /dev/kfd, see /usr/lib/x"),
        ("12 MB/s and 3/4 of it", "12 MB/s and 3/4 of it"),
        ("/home/annabel/x", "…/x"),
    ],
)
def test_paths_are_removed(text: str, result: str) -> None:
    assert without_paths(text, {"/home/anna": "~"}) == result


def test_the_user_is_removed_from_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "carla")
    home = Path.home()
    found = anonymous(Finding("x", "X", "good", f"{home}/a b/c {paths.runs()} /usr/carla/b", f"rm {home}"))
    assert found.text.startswith("~/a b/c RUNS") and "carla" not in found.text and found.advice == "rm ~"


def test_packages_are_compared_with_requirements_and_lock() -> None:
    needed = [Requirement(each) for each in ("a>=2", "B_c>=1", "d>=1; sys_platform == 'none'", "e; extra == 'web'")]
    good = computer_part.packages_finding({"a": "2.1+cpu", "b-c": "1"}, needed, {"a": "2.1"})
    assert good.state == "good" and "requirements.lock" in good.text
    other = computer_part.packages_finding({"a": "2.2", "b-c": "1"}, needed, {"a": "2.1"})
    assert other.state == "notice" and "a 2.2 (lock: 2.1)" in other.text
    old = computer_part.packages_finding({"a": "1.9"}, needed, {})
    assert old.state == "problem" and "a 1.9 is not >=2" in old.text and "B_c is missing" in old.text


def test_a_lock_is_read_without_other_systems() -> None:
    text = "# made by uv\nA_b==1.0 ; python_version >= '3' \\\n    --hash=sha256:0\nc==2 ; sys_platform == 'none'\n"
    assert computer_part.parse_lock(text) == {"a-b": "1.0"}


def test_this_installation_fits_its_requirements() -> None:
    assert computer_part.requirements()
    assert computer_part.locked_versions()["torch"]


def test_a_studio_of_an_installer_is_compared_with_the_lock_of_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / "requirements.lock").write_text("numpy==0.1 \\\n    --hash=sha256:0\n")
    found = computer_part.packages_finding(
        computer_part.installed_versions(), computer_part.requirements(), computer_part.locked_versions()
    )
    assert found.state == "notice" and "(lock: 0.1)" in found.text


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (good,) = computer_part.folder_findings("Runs folder", tmp_path / "not" / "there")
    assert good.state == "good" and not (tmp_path / "not").exists()
    (tmp_path / "file").write_text("")
    (bad,) = computer_part.folder_findings("Runs folder", tmp_path / "file")
    assert bad.prevents_training and "can't be written" in bad.text and "Settings" in bad.advice
    (bad,) = computer_part.folder_findings("Studio's home", tmp_path / "file")
    assert not bad.prevents_training and "STUDIO_HOME" in bad.advice
    monkeypatch.setattr(computer_part, "_FREE_DISK", (1 << 62, 1 << 61))
    (full,) = computer_part.folder_findings("Runs folder", tmp_path)
    assert full.state == "problem" and "studio free" in full.advice


def test_python_and_memory() -> None:
    assert computer_part.python_finding("3.11.7", is_64_bit=False).prevents_training
    states = [computer_part.memory_finding(limits.Memory(8 * GB, free)).state for free in (4 * GB, GB, GB // 4)]
    assert states == ["good", "notice", "problem"]


def test_damaged_runs_are_a_notice() -> None:
    assert computer_part.runs_finding().state == "good"
    (paths.runs() / "a").mkdir(parents=True)
    (paths.runs() / "a" / "run.json").write_text("{")
    found = computer_part.runs_finding()
    assert found.state == "notice" and "1 run: 1 damaged." in found.text and "'studio runs'" in found.advice


def test_speeds_are_compared_with_the_same_device() -> None:
    figure = speeds.Figure("A processor", 2, "bf16", 200.0, "2026-11-28", "studio check")
    slow = [DeviceMeasured("cpu", name, speed, 0.0, 0.0) for name, speed in (("fp32", 40.0), ("bf16", 90.0))]
    found = speeds.speed_finding(CPU, slow, [figure])
    assert found.state == "notice" and "90 sprites/s in bf16" in found.text and "2026-11-28" in found.text
    fast = speeds.speed_finding(CPU, [DeviceMeasured("cpu", "fp32", 150.0, 0.0, 0.0)], [figure])
    assert fast.state == "good" and "No comparison" not in fast.text
    other = speeds.speed_finding(CPU, slow, [speeds.Figure("A processor", 4, "bf16", 200.0, "", "")])
    assert other.state == "good" and "No comparison" in other.text


def test_every_figure_says_when_and_how_it_was_measured() -> None:
    figures = speeds.read_figures()
    assert figures
    for each in figures:
        assert time.strptime(each.date, "%Y-%m-%d") and each.how and each.sprites_per_s > 0 and each.device


def test_verdicts() -> None:
    good, notice = Finding("a", "A", "good", "Fine."), Finding("b", "B", "notice", "Hm.", "Do it.")
    problem = Finding("c", "C", "problem", "Bad.", changes_build=True)
    assert "in order" in summary([good]).as_text() and "works" in summary([good, notice]).as_text()
    assert "with 1 problem." in summary([problem]).as_text()
    assert report([good, notice]) == "good    A: Fine.\nnotice  B: Hm.\n        -> Do it.\n"


def test_commands_that_change_the_build() -> None:
    found = {each.name: each for each in builds("Linux", "x86_64")}
    (words,) = commands_for(found["cpu"], "/e/python", ["uv"], "2.15.0")
    assert " ".join(words) == (
        "uv pip install --python /e/python --torch-backend cpu --reinstall-package torch "
        "--reinstall-package torchvision torch==2.15.0 torchvision"
    )
    pip, words = commands_for(found["cu126"], "/e/python", [], "2.15.0")
    assert pip[1:4] == ["-m", "pip", "install"] and words[:3] == ["/e/python", "-m", "uv"] and "torch<2.15" in words
    (words,) = commands_for(found["cu132"], "/e/python", ["uv"], "")
    assert "--torch-backend" not in words and "torch" in words


def test_the_launcher_changes_the_build_of_its_studio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    start = tmp_path / "start"
    monkeypatch.setenv("STUDIO_LAUNCHER", str(start))
    assert setup_command("cpu") == [], "the installer's files are gone"
    start.touch()
    assert change_commands("cpu") == [[str(start), "--setup", "--torch", "cpu"]]
    assert setup_command("cpu")[-3:] == ["--setup", "--torch", "cpu"]
    (tmp_path / "bundle.json").write_text('{"build": "cu132", "python": "3.11"}')
    assert [each.name for each in available_builds()] == ["cu132"] and change_commands("cpu") == []
