"""Wrong words, help, and what is said when things go wrong."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from studio.cli import flags, main, window
from studio.cli.messages import DONE, FAILED, INTERRUPTED, WRONG_USAGE
from studio.cli.signal_handlers import stop_on_signal
from studio.core.config import Config, setting, settings_of
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.recipes.base import TrainingBudget
from tests.cli.tools import Studio

no_hangup = pytest.mark.skipif(sys.platform == "win32", reason="no terminal hangs up there")


@dataclass(frozen=True)
class Everything(Config):
    """One setting of each kind."""

    number_of: int = setting(1, "A number of 100 % of things.", low=0, high=10)
    share: float = setting(0.1, "A share.")
    mirror: bool = setting(True, "Mirrored.")
    kind: str = setting("a", "A kind.", choices=("a", "b"))
    class_name: str = setting("", "A class.", advanced=True)


def test_help_reads_well(studio: Studio) -> None:
    text = studio("--help").out
    for command in ("demo", "devices", "inspect", "train", "resume", "generate", "predict", "export", "runs"):
        assert f"\n    {command} " in text
    assert studio("--version").out.startswith("Sprite Training Studio ")


@pytest.mark.parametrize("name", sorted(catalog.recipes()))
def test_every_setting_of_a_recipe_is_a_flag(name: str, studio: Studio) -> None:
    text = studio("train", "--recipe", name, "--help").out
    for item in settings_of(catalog.recipe(name).Config):
        assert f"--{item.name.replace('_', '-')}" in text
    assert all(preset.title.lower() in text for preset in catalog.recipe(name).presets(TrainingBudget()))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nonsense"], "invalid choice"),
        (["train"], "PATH"),
        (["train", "x", "--minutes", "-3"], "Minutes must be from 0.05 to 100,000, not -3."),
        (["train", "x", "--width", "many"], "'many' is not a whole number"),
        (["train", "x", "--recipe", "painter"], "Choose one of: generator, classifier, regression"),
        (["train", "x", "--preset", "superb"], "Choose one of: quick, standard, best."),
        (["train", "x", "--name", "a", "--out", "b"], "not allowed with"),
        (["generate", "no such run"], "There is no run 'no such run'."),
        (["resume", "."], "is not a run"),
        (["export"], "RUN"),
        (["train", "x", "--step", "3"], "'studio train' does not know '--step'.\n'studio train --help' lists"),
        (["--steps"], "'studio' does not know '--steps'."),
        (["runs", "mine"], "'studio runs' does not know 'mine'."),
        (["inspect", "x", "--other-sizes", "leave"], "there is no 'leave'. Choose one of: pad, leave out."),
        (["generate", "x", "--columns", "0"], "--columns must be at least 1, not 0."),
        (["devices", "--measure", "--size", "2"], "--size must be from 4"),
        (["demo", "--minutes", "0"], "--minutes must be from"),
    ],
)
def test_usage_errors_have_exit_code_2(words: list[str], said: str, studio: Studio) -> None:
    err = studio(*words, code=WRONG_USAGE).err
    assert said in err and "Traceback" not in err


def test_a_failed_job_prints_error_and_hint(tmp_path: Path, studio: Studio) -> None:
    out, err = studio("inspect", tmp_path / "nowhere", code=FAILED)
    assert "nowhere" in err and not out and "Traceback" not in err
    assert studio("inspect", tmp_path, "--json", code=FAILED).objects()[-1]["type"] == "JobFailed"


def raising(error: Exception) -> Callable[..., None]:
    def fail(**_: object) -> None:
        raise error

    return fail


def test_a_bug_is_reported_as_a_bug(monkeypatch: pytest.MonkeyPatch, studio: Studio) -> None:
    monkeypatch.setattr("studio.cli.runs.list_runs", raising(ZeroDivisionError("a slip")))
    text = studio("runs", code=FAILED).err
    assert "This is a bug in the studio: ZeroDivisionError: a slip" in text and "Traceback" not in text
    assert "Traceback" in studio("runs", "--debug", code=FAILED).err


def test_an_os_error_is_not_reported_as_a_bug(monkeypatch: pytest.MonkeyPatch, studio: Studio) -> None:
    refusal = PermissionError(13, "Permission denied", "/somewhere")
    monkeypatch.setattr("studio.cli.runs.list_runs", raising(refusal))
    assert studio("runs", code=FAILED).err == "Permission denied (/somewhere).\n"


def test_paths_without_a_command_open_the_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from studio.app import launch

    opened: list[tuple[str | None, list[Path]]] = []

    def launched(demo: str | None = None, paths: Sequence[Path] = ()) -> int:
        opened.append((demo, list(paths)))
        return 7

    monkeypatch.setattr(launch, "main", launched)
    monkeypatch.setattr(window, "obstacle", lambda: "")
    monkeypatch.chdir(tmp_path)
    for name in ("sprites", "runs"):
        (tmp_path / name).mkdir()
    assert main([]) == main(["sprites", str(tmp_path)]) == main(["demo"]) == main(["demo", "--sets"]) == 7
    assert opened == [(None, []), (None, [Path("sprites"), tmp_path]), ("sprites", []), ("sets", [])]
    assert main(["runs"]) == DONE  # a command, whatever else is called so
    for words, wrong in ((["spritez"], "'spritez'"), (["sprites", "--size", "16"], "'--size'")):
        assert main(words) == WRONG_USAGE and wrong in capsys.readouterr().err
    assert len(opened) == 4


def test_a_program_without_a_console_says_nothing_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}", None)  # as Windows has it for the command that opens the window
    assert main(["runs"]) == DONE
    assert main(["inspect", "nothing here"]) == FAILED


def test_typed_settings_returns_only_typed_flags() -> None:
    parser = argparse.ArgumentParser()
    flags.add_setting_flags(parser, Everything, "all", renamed={"class_name": "class"})
    assert flags.typed_settings(parser.parse_args([]), Everything) == {}
    words = ["--number-of", "3", "--share", "0.5", "--no-mirror", "--kind", "b", "--class", "x"]
    assert flags.typed_settings(parser.parse_args(words), Everything) == {
        "number_of": 3, "share": 0.5, "mirror": False, "kind": "b", "class_name": "x",
    }  # fmt: skip
    assert "100 % of things" in parser.format_help()
    for wrong in (["--number-of", "30"], ["--share", "nan"], ["--kind", "z"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)


def test_fault_28_the_first_interrupt_asks_and_the_second_ends(capfd: pytest.CaptureFixture[str]) -> None:
    control, before = Control(), signal.getsignal(signal.SIGINT)
    with stop_on_signal(control) as stop_request:
        signal.raise_signal(signal.SIGINT)
        assert control.stop and stop_request.received
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().err.count("Stopping and saving the run.") == 1
    assert signal.getsignal(signal.SIGINT) is before


@no_hangup
def test_fault_36_all_signals_of_one_shutdown_ask_once(capfd: pytest.CaptureFixture[str]) -> None:
    control = Control()
    with stop_on_signal(control) as stop_request:
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGTERM):
            signal.raise_signal(number)
        assert control.stop and stop_request.received
    assert capfd.readouterr().err.count("Stopping and saving the run.") == 1


@no_hangup
def test_fault_36_what_outlives_its_terminal_is_not_stopped_by_it() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with stop_on_signal(Control()) as stop_request:
            signal.raise_signal(signal.SIGHUP)
        assert not stop_request.received and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals there")
def test_fault_36_a_command_whose_terminal_is_closed_lets_go_of_it() -> None:
    import pty

    code = (
        "import signal, sys\n"
        "from studio.cli.signal_handlers import stop_on_signal\n"
        "class Control: stop = False\n"
        "with stop_on_signal(Control()) as stop_request:\n"
        "    print('here', flush=True)\n"
        "    while not stop_request.received:\n"  # no pause(): the signal may have come before it
        "        signal.sigtimedwait([], 0.05)\n"
        "    print('said to nobody', flush=True)\n"
        "sys.exit(40 + stop_request.received)\n"
    )
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, "-c", code])
    assert b"here" in os.read(terminal, 100)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 41


@pytest.mark.parametrize("name", ["SIGTERM", pytest.param("SIGHUP", marks=no_hangup)])
def test_fault_36_other_commands_end_as_by_ctrl_c_and_no_repeated_signal_interrupts_their_tidying_up(
    name: str, monkeypatch: pytest.MonkeyPatch, studio: Studio
) -> None:
    tidied = []

    def ended(args: argparse.Namespace) -> int:
        try:
            signal.raise_signal(signal.Signals[name])
        finally:
            for again in (name, "SIGTERM"):
                signal.raise_signal(signal.Signals[again])
                tidied.append(again)
        return DONE

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("studio.cli.runs.runs", ended)
    assert studio("runs", code=INTERRUPTED).err == "Interrupted.\n"
    assert tidied == [name, "SIGTERM"] and signal.getsignal(signal.SIGTERM) is before
