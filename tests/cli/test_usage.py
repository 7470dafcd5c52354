"""Wrong words, help, and what is said when things go wrong."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from studio.cli import flags, main, window
from studio.cli.interrupts import stopping
from studio.cli.messages import DONE, FAILED, INTERRUPTED, WRONG_USAGE
from studio.core import places
from studio.core.config import Config, setting, settings_of
from studio.engine import catalog
from studio.engine.control import Control
from studio.engine.runs.folder import RunDir, RunProgress, RunRecord
from studio.recipes.base import TrainingBudget
from tests.cli.tools import json_lines


@dataclass(frozen=True)
class Everything(Config):
    """One setting of each kind."""

    number_of: int = setting(1, "A number of 100 % of things.", low=0, high=10)
    share: float = setting(0.1, "A share.")
    mirror: bool = setting(True, "Mirrored.")
    kind: str = setting("a", "A kind.", choices=("a", "b"))
    class_name: str = setting("", "A class.", advanced=True)


def test_help_reads_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == DONE
    text = capsys.readouterr().out
    for command in ("demo", "devices", "inspect", "train", "resume", "generate", "predict", "export", "runs"):
        assert f"\n    {command} " in text
    assert main(["--version"]) == DONE
    assert capsys.readouterr().out.startswith("Sprite Training Studio ")


@pytest.mark.parametrize("name", sorted(catalog.recipes()))
def test_every_setting_of_a_recipe_is_a_flag(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--recipe", name, "--help"]) == DONE
    text = capsys.readouterr().out
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
def test_wrong_usage_is_said_with_exit_code_2(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == WRONG_USAGE
    captured = capsys.readouterr()
    assert said in captured.err and "Traceback" not in captured.err


def test_a_failed_job_says_what_and_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "nowhere")]) == FAILED
    captured = capsys.readouterr()
    assert "nowhere" in captured.err and not captured.out and "Traceback" not in captured.err
    assert main(["inspect", str(tmp_path), "--json"]) == FAILED
    assert json_lines(capsys.readouterr().out)[-1]["type"] == "JobFailed"


def test_a_bug_is_called_a_bug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(**_: object) -> None:
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr("studio.cli.runs.list_runs", broken)
    assert main(["runs"]) == FAILED
    text = capsys.readouterr().err
    assert "This is a bug in the studio: ZeroDivisionError: a slip" in text and "Traceback" not in text
    assert main(["runs", "--debug"]) == FAILED
    assert "Traceback" in capsys.readouterr().err


def test_fault_34_a_damaged_run_is_listed_with_the_field_and_all_others_are_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begun = "2026-01-01T00:00:00+00:00"
    record = RunRecord(
        "trial", "generator", {}, 8, ("a",), "discs", 24, "", "cpu", "CPU", "fp32", 9, begun, {}, "group"
    )
    for name in ("good", "bad", "worse"):
        run = RunDir(places.runs() / name)
        run.path.mkdir(parents=True)
        run.create(replace(record, name=name))
        run.write_progress(RunProgress("finished", 7, 1.0, {"loss": 0.5}))
    for name, damage in (("bad", {"created": 5}), ("worse", {"class_names": None})):
        path = places.runs() / name / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **damage}))
    assert main(["runs", "--json"]) == DONE
    rows = {Path(row["path"]).name: row for row in json_lines(capsys.readouterr().out)}
    assert rows["good"]["standing"] == "finished" and rows["good"]["progress"]["step"] == 7
    assert [rows[name]["standing"] for name in ("bad", "worse")] == ["damaged", "damaged"]
    assert "'created' holds a whole number" in rows["bad"]["problem"] and "'class_names'" in rows["worse"]["problem"]
    assert main(["runs"]) == DONE
    said = " ".join(capsys.readouterr().out.split())
    assert "good generator discs" in said and "'created'" in said


def test_what_the_system_refuses_is_no_bug(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(**_: object) -> None:
        raise PermissionError(13, "Permission denied", "/somewhere")

    monkeypatch.setattr("studio.cli.runs.list_runs", refused)
    assert main(["runs"]) == FAILED
    assert capsys.readouterr().err == "The system says: Permission denied (/somewhere).\n"


def test_no_command_opens_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    from studio.app import launch

    monkeypatch.setattr(launch, "main", lambda demo=False: 7 if not demo else 8)
    assert main([]) == 7
    monkeypatch.setattr(window, "obstacle", lambda: "")
    assert main(["demo"]) == 8


def test_a_program_without_a_console_says_nothing_and_works(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in ("stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}", None)  # as Windows has it for the command that opens the window
    assert main(["runs"]) == DONE
    assert main(["inspect", "nothing here"]) == FAILED


def test_flags_give_typed_values_and_only_those_that_were_typed() -> None:
    parser = argparse.ArgumentParser()
    flags.add_settings(parser, Everything, "all", renamed={"class_name": "class"})
    assert flags.given(parser.parse_args([]), Everything) == {}
    words = ["--number-of", "3", "--share", "0.5", "--no-mirror", "--kind", "b", "--class", "x"]
    assert flags.given(parser.parse_args(words), Everything) == {
        "number_of": 3, "share": 0.5, "mirror": False, "kind": "b", "class_name": "x",
    }  # fmt: skip
    assert "100 % of things" in parser.format_help()
    for wrong in (["--number-of", "30"], ["--share", "nan"], ["--kind", "z"]):
        with pytest.raises(SystemExit):
            parser.parse_args(wrong)


def test_fault_28_the_first_interrupt_asks_and_the_second_ends(capfd: pytest.CaptureFixture[str]) -> None:
    control, before = Control(), signal.getsignal(signal.SIGINT)
    with stopping(control) as interruption:
        signal.raise_signal(signal.SIGINT)
        assert control.stop and interruption.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().err.count("Stopping and saving the work.") == 1
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(sys.platform == "win32", reason="no terminal hangs up there")
def test_fault_36_all_signals_of_one_shutdown_ask_once(capfd: pytest.CaptureFixture[str]) -> None:
    control = Control()
    with stopping(control) as interruption:
        for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM, signal.SIGTERM):
            signal.raise_signal(number)
        assert control.stop and interruption.asked
    assert capfd.readouterr().err.count("Stopping and saving the work.") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no terminal hangs up there")
def test_fault_36_what_outlives_its_terminal_is_not_stopped_by_it() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with stopping(Control()) as interruption:
            signal.raise_signal(signal.SIGHUP)
        assert not interruption.asked and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals there")
def test_fault_36_a_command_whose_terminal_is_closed_lets_go_of_it() -> None:
    import pty

    code = (
        "import signal, sys\n"
        "from studio.cli.interrupts import stopping\n"
        "class Control: stop = False\n"
        "with stopping(Control()) as interruption:\n"
        "    print('here', flush=True)\n"
        "    while not interruption.asked:\n"  # no pause(): the signal may have come before it
        "        signal.sigtimedwait([], 0.05)\n"
        "    print('said to nobody', flush=True)\n"
        "sys.exit(40 + interruption.asked)\n"
    )
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [sys.executable, "-c", code])
    assert b"here" in os.read(terminal, 100)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 41


def test_fault_36_sigterm_ends_other_commands_as_ctrl_c_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def terminated(args: argparse.Namespace) -> int:
        signal.raise_signal(signal.SIGTERM)
        return DONE

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr("studio.cli.runs.runs", terminated)
    assert main(["runs"]) == INTERRUPTED
    assert capsys.readouterr().err == "Interrupted.\n" and signal.getsignal(signal.SIGTERM) is before


@pytest.mark.skipif(sys.platform == "win32", reason="no terminal hangs up there")
def test_fault_36_a_signal_that_is_repeated_does_not_interrupt_the_tidying_up(monkeypatch: pytest.MonkeyPatch) -> None:
    tidied = []

    def ended(args: argparse.Namespace) -> int:
        try:
            signal.raise_signal(signal.SIGHUP)
        finally:
            for number in (signal.SIGHUP, signal.SIGTERM):
                signal.raise_signal(number)
                tidied.append(number)
        return DONE

    monkeypatch.setattr("studio.cli.runs.runs", ended)
    assert main(["runs"]) == INTERRUPTED
    assert tidied == [signal.SIGHUP, signal.SIGTERM]
