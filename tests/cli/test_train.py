"""Training from the command line: runs, interruption, resuming."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from studio.cli.messages import FAILED, INTERRUPTED, WRONG_USAGE
from studio.cli.parser import parse
from studio.cli.reporting import Reporter
from studio.cli.train import chosen_config, train_until_stopped
from studio.core import paths
from studio.core.events import CheckpointSaved, Events, LossChunk, Progress, RunStarted
from studio.engine import catalog
from studio.engine.control.control import Control
from studio.engine.runs import listing
from studio.engine.runs.folder import RunDir
from studio.engine.runs.listing import remember, remembered_runs
from studio.engine.training.loop import train_resumed
from studio.recipes.base import TrainingBudget
from tests.cli.tools import SMALL, TINY, Studio, json_lines, training
from tests.conftest import make_sprites
from tests.engine.tools import CPU, of_kind, own_clock, train_generator


@pytest.mark.parametrize("recipe", ["generator", "classifier"])
def test_train_creates_a_run_and_lists_excluded_files(
    folder: Path, tmp_path: Path, recipe: str, studio: Studio
) -> None:
    run, art = tmp_path / "else where" / "trial", shutil.copytree(folder, tmp_path / "art")
    (art / "text.png").write_text("no picture")
    out, err = studio(*training(art, run, recipe))
    assert (
        "Done: 4 steps in" in out
        and str(run) in out
        and "Excluded files: 1. 'studio inspect' lists the reasons." in out
    )
    assert f"Training the {recipe} on cpu in fp32" in err and "for validation" in err
    assert ("studio generate" if recipe == "generator" else "studio predict") in out
    assert f"'{run}'" in out  # a path with a space can be copied from here
    assert remembered_runs() == [run] and RunDir(run).record().data_count == 24
    assert listing.summarise(run).standing == "finished"
    assert "is not empty" in studio(*training(folder, run, recipe), code=FAILED).err


def test_a_regression_learns_the_numbers_of_a_table(
    labelled_folder: Path, folder: Path, tmp_path: Path, studio: Studio
) -> None:
    run = tmp_path / "run"
    err = studio(*training(labelled_folder, run, "regression")).err
    assert "Left out, without a number: 1 sprite." in err and "R² " in err
    record = RunDir(run).record()
    assert record.target_names == ("visible", "per cent") and record.data_count == 23
    assert "R² " in studio("runs").out
    err = studio(*training(folder, tmp_path / "other", "regression"), code=FAILED).err
    assert "labels.csv next to your sprites" in err and not (tmp_path / "other").exists()


def test_json_tells_everything_a_line_each(folder: Path, tmp_path: Path, studio: Studio) -> None:
    said = studio(*training(folder, tmp_path / "run", "classifier", "--json"))
    assert not said.err
    found = said.objects()
    kinds = [item["type"] for item in found]
    assert kinds[0] == "Progress" and kinds[-1] == "RunFinished"
    assert {"SpritesImported", "RunStarted", "LossChunk", "Validated", "CheckpointSaved"} <= set(kinds)
    imported = found[kinds.index("SpritesImported")]
    assert imported["sprites"]["classes"] == {"class0": 12, "class1": 12} and imported["sizes"] == {"8x8": 24}
    assert sum(len(item["losses"]) for item in found if item["type"] == "LossChunk") == 4
    assert found[-1]["reason"] == "finished" and found[-1]["step"] == 4


def test_a_new_run_gets_a_free_folder(folder: Path, studio: Studio) -> None:
    words = ["train", folder, "--recipe", "classifier", "--steps", "1", *TINY, *SMALL["classifier"]]
    for named in ([], [], ["--name", "../CON"]):
        studio(*words, *named)
    names = sorted(path.name for path in paths.runs().iterdir())
    assert len(names) == 3 and names[1].endswith("discs classifier 2") and "CON" in names[2]
    assert remembered_runs() == []
    out, err = studio("resume", names[0])  # found by its name; nothing was left to do
    assert "studio predict" in out and "Done" not in out and "is finished." in err


def test_presets_change_settings_and_flags_win(folder: Path, tmp_path: Path, studio: Studio) -> None:
    studio(*training(folder, tmp_path / "run", "classifier", "--preset", "QUICK", "--width", "16"))
    config = RunDir(tmp_path / "run").record().config
    assert config["width"] == 16 and config["steps"] == 4


@pytest.mark.parametrize(
    ("flags", "minutes", "epochs"),
    [([], 3.0, 1000), (["--width", "16"], 3.0, 1000), (["--minutes", "2"], 2.0, 0), (["--steps", "5"], 3.0, 0)],
)
@pytest.mark.parametrize("preset", [[], ["--preset", "standard"]], ids=["none", "named"])
def test_a_typed_length_replaces_the_preset_length(
    preset: list[str], flags: list[str], minutes: float, epochs: int
) -> None:
    """It would be, where a preset counts epochs: with steps or minutes beside them, they decide."""
    args = parse(["train", "sprites", "--recipe", "classifier", *preset, *flags])
    config = chosen_config(catalog.recipe("classifier"), args, TrainingBudget(200, 5000.0))
    assert (config.minutes, config.epochs) == (minutes, epochs)


def test_former_flag_of_a_setting_is_hidden_and_still_accepted(studio: Studio) -> None:
    args = parse(["train", "sprites", "--recipe", "classifier", "--watch-layers"])
    assert chosen_config(catalog.recipe("classifier"), args, TrainingBudget(200, 5000.0)).log_layer_stats
    shown = studio("train", "--recipe", "classifier", "--help").out
    assert "--log-layer-stats" in shown and "--watch-layers" not in shown


def test_more_minutes_go_on_with_a_finished_run(
    run_path: Path, folder: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    studio("train", folder, "--out", run_path, *SMALL["generator"], "--steps", "2")
    assert "--more-minutes 10 trains it longer" in studio("resume", run_path).err
    for wrong in ("0", "-3", "nan"):
        assert "Minutes" in studio("resume", run_path, "--more-minutes", wrong, code=2).err
    own_clock(monkeypatch)
    said = studio("resume", run_path, "--more-minutes", "0.05", "--json").objects()
    chunks = [each for each in said if each["type"] == "LossChunk"]
    assert chunks[0]["first_step"] == 2 and said[-1]["type"] == "RunFinished" and said[-1]["reason"] == "finished"


@pytest.mark.slow
def test_early_stopping_prints_its_reason(folder: Path, run_path: Path, studio: Studio) -> None:
    """All validation sprites are soon named right."""
    words = ["train", folder, "--out", run_path, "--recipe", "classifier", *TINY, *SMALL["classifier"]]
    out, err = studio(*words, "--steps", "1000", "--stop-early")
    assert "Done: " in out and "Done: 1,000" not in out and "good enough. The accuracy on validation sprites" in err
    assert "Ended early. The accuracy on validation sprites" in studio("resume", run_path).err
    assert "finished: Ended early. The accuracy" in studio("runs").out


def test_resume_goes_on_where_it_stopped(run_path: Path, studio: Studio) -> None:
    list(train_generator(run_path, make_sprites(), Control(stop=True), steps=4))
    assert listing.summarise(run_path).standing == "stopped"
    last = studio("resume", run_path, "--json").objects()[-1]
    assert last["type"] == "RunFinished" and last["reason"] == "finished" and last["step"] == 4
    assert listing.summarise(run_path).standing == "finished"


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal for one process there")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_fault_28_and_36_ctrl_c_and_sigterm_save_and_the_run_can_be_resumed(
    folder: Path, tmp_path: Path, name: str
) -> None:
    run = tmp_path / "run"
    words = ["train", str(folder), "--out", str(run), "--minutes", "10", "--json", *TINY, *SMALL["generator"]]
    command = [sys.executable, "-m", "studio", *words, "--device", "cpu"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ})
    assert process.stdout is not None
    for text in process.stdout:
        if json.loads(text)["type"] == "LossChunk":
            process.send_signal(signal.Signals[name])
            break
    rest, said = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED, said
    last = json_lines(rest)[-1]
    assert last["type"] == "RunFinished" and last["reason"] == "stopped" and last["step"] >= 1
    assert "Stopping and saving the run." in said and "Traceback" not in said

    control, events = Control(), []
    for event in train_resumed(run, CPU, control):
        events.append(event)
        control.stop = control.stop or isinstance(event, LossChunk)
    assert of_kind(events, RunStarted)[0].first_step == last["step"]
    assert of_kind(events, CheckpointSaved)[-1].step > last["step"]


@pytest.mark.parametrize("begun", [True, False])
def test_a_second_ctrl_c_promises_no_more_than_there_is(
    run_path: Path, begun: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    def job() -> Events:
        if begun:
            yield from train_generator(run_path, make_sprites(), Control(stop=True))
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        yield Progress(0, 0, "never")

    with pytest.raises(KeyboardInterrupt):
        train_until_stopped(job(), run_path, Control(), Reporter())
    assert (f"studio resume {run_path}" in capfd.readouterr().err) == begun
    assert remembered_runs() == ([run_path] if begun else [])


def test_remembered_runs_have_no_duplicates(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b", "odd \udc80")]
    for path in [*folders, folders[0], paths.runs() / "inside"]:
        remember(path)
    assert remembered_runs() == [folders[0], folders[2], folders[1]]
    (paths.home() / "known_runs.json").write_text("{broken")
    assert remembered_runs() == []
    remember(folders[1])
    assert remembered_runs() == [folders[1]]


def test_a_training_starts_from_a_run_or_from_the_starter(folder: Path, tmp_path: Path, studio: Studio) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    studio(*training(folder, first, "generator"))
    err = studio(*training(folder, second, "generator", "--from", str(first), "--width", "32")).err
    assert "Width: 16, taken from the start model." in err and "starting from first" in err
    assert [one.title for one in RunDir(second).record().ancestors] == ["first"]
    assert "(24), from first" in studio("runs").out
    studio(*training(folder, third, "generator", "--from", "starter", "--steps", "1"))
    record = RunDir(third).record()
    assert [one.title for one in record.ancestors] == ["starter"] and record.config["width"] == 32
    assert record.config["learning_rate"] < RunDir(first).record().config["learning_rate"]
    words = ["train", str(folder), "--steps", "1", *TINY]
    assert "which helps with 24 sprites" in studio(*words, "--out", str(tmp_path / "fourth")).out
    assert [one.title for one in RunDir(tmp_path / "fourth").record().ancestors] == ["starter"]
    for name, more in (("fifth", ("--from", "nothing")), ("sixth", ("--colours", "32"))):
        assert "as suits" not in studio(*words, *more, "--width", "16", "--out", str(tmp_path / name)).out
        assert not RunDir(tmp_path / name).record().ancestors
    for recipe, parent, said in (
        ("generator", "nobody", "There is no run 'nobody'"),
        ("classifier", "starter", "The recipe 'classifier' has no starter model"),
        ("classifier", str(first), "no classifier can start from it"),
    ):
        err = studio(*training(folder, tmp_path / "never", recipe, "--from", parent), code=WRONG_USAGE).err
        assert said in err and not (tmp_path / "never").exists()
