"""Using models from the command line, and the demo."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.cli import demo
from studio.cli.messages import FAILED, INTERRUPTED, WRONG_USAGE
from studio.cli.reporting import PlainReporter
from studio.core import paths
from studio.core.events import Event, LossChunk
from studio.engine import catalog
from studio.engine.devices import detection
from studio.engine.runs.folder import RunDir
from studio.engine.runs.listing import remember
from studio.exports.c_file import CFile
from studio.exports.onnx import Onnx
from studio.exports.pt2 import ExportedProgram
from studio.exports.safetensors import Safetensors
from studio.exports.script import Script
from studio.exports.web_page import WebPage
from tests.cli.tools import Studio
from tests.engine.tools import own_clock
from tests.exports.tools import Rounded


def copy_of(run: Path, target: Path, **changes: object) -> Path:
    """A run with other words in its record."""
    record = json.loads((shutil.copytree(run, target) / "run.json").read_text(encoding="utf-8"))
    (target / "run.json").write_text(json.dumps(record | changes))
    return target


def test_generate_writes_a_sheet_with_metadata(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    out = tmp_path / "sheet.png"
    words = ["generate", generator_run, "--count", 10, "--seed", 7, "--steps", 2, "--columns", 4, "--out", out]
    assert f"10 new sprites of my generator, step 4: {out}" in studio(*words).out
    with Image.open(out) as picture:
        assert picture.size == (32, 24) and picture.mode == "RGBA"
        assert picture.text["seed"] == "7" and picture.text["model"] == "my generator, step 4"  # type: ignore[attr-defined]
        first = np.asarray(picture)
    about = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert [frame["filename"] for frame in about["frames"][:2]] == ["class0/class0 001", "class1/class1 001"]
    found = studio(*words, "--json").objects()  # the same again, beside the first
    assert found[-1] == {"type": "FilesSaved", "paths": [str(tmp_path / "sheet-2.png"), str(tmp_path / "sheet-2.json")]}
    with Image.open(tmp_path / "sheet-2.png") as picture:
        assert np.array_equal(np.asarray(picture), first)


def test_attributes_are_given_one_by_one(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    words = ["generate", generator_run, "--attribute", "element=fire", "--attribute", "kind=shield, round"]
    said = studio(*words, "--out", tmp_path / "sheet.png", code=WRONG_USAGE).err
    assert "my generator has no attributes" in said


def test_generate_makes_files_of_one_class(
    generator_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, studio: Studio
) -> None:
    words = ["generate", generator_run, "--count", 3, "--class", "class1", "--steps", 2, "--checkpoint", 4]
    (tmp_path / "sprites.v2").mkdir()
    for folder in (tmp_path / "new", tmp_path / "sprites.v2"):
        assert f": {folder}\n" in studio(*words, "--out", folder).out
        assert sorted(path.name for path in folder.iterdir()) == [f"class1-{i}.png" for i in (1, 2, 3)]
    monkeypatch.chdir(tmp_path)
    studio(*words)
    assert [path.name for path in tmp_path.glob("*.png")] == ["my-generator-class1-0.png"]
    for wrong, said in (
        (["--class", "dragon"], "no class 'dragon'"),
        (["--checkpoint", "9"], "no checkpoint at step 9"),
        (["--device", "quantum"], "no device named 'quantum'"),
        (["--out", "sprites.bmp"], "Sprites can't be saved as '.bmp'"),
        (["--format", "bmp"], "no format for sprites named"),
    ):
        assert said in studio(*words, *wrong, code=WRONG_USAGE).err


def test_generate_imports_neither_compiler_nor_qt_and_probes_no_device(generator_run: Path, tmp_path: Path) -> None:
    cpu, config = detection._cpu(), RunDir(generator_run).record().config
    changes = {"device": cpu.id, "device_name": cpu.name, "config": {**config, "precision": "auto"}}
    run = copy_of(generator_run, tmp_path / "run", **changes)
    code = f"""
import sys
from studio.cli import main
from studio.engine import devices
steps = []
devices.probe_step = lambda *words: steps.append(words) or 1.0
run, out = {str(run)!r}, {str(tmp_path)!r}
assert main(["generate", run, "--count", "2", "--steps", "1", "--device", "cpu", "--out", f"{{out}}/new.png"]) == 0
assert main(["export", run, "--out", f"{{out}}/model.safetensors"]) == 0
assert not steps, steps
loaded = {{"torch._dynamo", "torch._inductor", "sympy", "torchvision"}} & set(sys.modules)
assert not loaded, loaded
import studio.engine.training.loop
from studio.engine import catalog
catalog.recipes(), catalog.model_exports()
loaded = {{"PySide6", "pyqtgraph"}} & set(sys.modules)
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_fault_13_a_class_name_makes_no_folder(
    generator_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, studio: Studio
) -> None:
    run = copy_of(generator_run, tmp_path / "copy", class_names=["items/sword", "../../x"])
    here = tmp_path / "in" / "here"
    here.mkdir(parents=True)
    monkeypatch.chdir(here)
    for words in (["items/sword"], ["../../x"], ["../../x", "--out", "new"]):
        studio("generate", run, "--count", 1, "--steps", 1, "--class", *words)
    made = {path.relative_to(here).as_posix() for path in (tmp_path / "in").rglob("*.png")}
    assert made == {"copy-sword-0.png", "copy-x-0.png", "new/x-1.png"}


def test_a_generator_is_no_classifier(generator_run: Path, classifier_run: Path, folder: Path, studio: Studio) -> None:
    assert "can't draw sprites" in studio("generate", classifier_run, code=WRONG_USAGE).err
    assert "can't predict" in studio("classify", generator_run, folder, code=WRONG_USAGE).err


def test_classify_answers_for_every_file(classifier_run: Path, folder: Path, tmp_path: Path, studio: Studio) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    shutil.copy(copy / "class0" / "sprite 001.png", copy / "class0" / "twin.png")
    (copy / "text.png").write_text("no picture")
    text = studio("classify", classifier_run, copy).out
    assert text.count("sprite 0") == 24 and "class0/twin.png" in text and "%" in text
    assert "Excluded files: 1. 'studio inspect' lists the reasons.\n  text.png: " in text
    lines = studio("classify", classifier_run, copy, "--json").objects()
    found = [item for item in lines if item["type"] == "SpriteClassified"]
    assert len(found) == 25 and [item["name"] for item in lines if item["type"] == "FileLeftOut"] == ["text.png"]
    answers = {item["name"]: item["classes"] for item in found}
    assert answers["class0/twin.png"] == pytest.approx(answers["class0/sprite 001.png"], abs=1e-5)
    assert all(abs(sum(item["classes"].values()) - 1) < 1e-4 for item in found)


def test_predict_clears_a_magenta_ground_as_the_import_of_the_training_did(
    classifier_run: Path, folder: Path, tmp_path: Path, studio: Studio
) -> None:
    origin = {"options": {"clear_magenta": True}}
    run = copy_of(classifier_run, tmp_path / "copy", data_origin=origin)
    rgba = np.array(Image.open(folder / "class0" / "sprite 001.png").convert("RGBA"))
    given = tmp_path / "given"
    given.mkdir()
    Image.fromarray(rgba).save(given / "clear.png")
    rgba[rgba[..., 3] == 0] = (255, 0, 255, 255)
    rgba[..., 3] = 255
    Image.fromarray(rgba).save(given / "magenta.png")
    found = [item for item in studio("predict", run, given, "--json").objects() if item["type"] == "SpriteClassified"]
    clear, magenta = (item["classes"] for item in found)
    assert magenta == pytest.approx(clear, abs=1e-5)


def test_predict_says_numbers(
    regression_run: Path, classifier_run: Path, labelled_folder: Path, studio: Studio
) -> None:
    text = studio("predict", regression_run, labelled_folder).out
    assert text.count("sprite 0") == 24 and "visible" in text and "per cent" in text
    lines = studio("predict", regression_run, labelled_folder / "class0", "--json").objects()
    found = [item for item in lines if item["type"] == "NumbersOfSprite"]
    assert len(found) == 12 and all(set(item["numbers"]) == {"visible", "per cent"} for item in found)
    assert studio("predict", classifier_run, labelled_folder, "--json").objects()[-1]["type"] == "SpriteClassified"


@pytest.mark.usefixtures("made_once")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in ("pt2", "onnx", "c", "script", "web") else [])
        for name, form in sorted(catalog.model_exports().items())
        if not form.missing()
    ],
)
def test_export_says_how_exact_it_is_and_how_to_load_it(
    generator_run: Path, tmp_path: Path, name: str, studio: Studio
) -> None:
    suffix = catalog.model_exports()[name].suffix
    target = tmp_path / f"model{suffix}"
    text = studio("export", generator_run, "--out", target).out  # the ending says which format
    assert target.is_file() and str(target) in text and re.search("import|include|openModel", text)
    assert re.search(r"the model at step 4: outputs are (exactly the same|the same to \d+ digits)\.", text)
    *found, last = studio("export", generator_run, "--format", name, "--out", target, "--json").objects()
    assert last["type"] == "Exported" and last["difference"] <= 1e-4
    assert last["paths"][0] == str(tmp_path / f"model-2{suffix}")
    assert any("already exists" in item.get("title", "") for item in found)


def test_export_defaults_to_the_exports_folder(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    run = shutil.copytree(generator_run, tmp_path / "copy")
    studio("export", run)
    assert (run / "exports" / "my-generator.safetensors").is_file()
    endings = ", ".join(form.suffix for form in catalog.model_exports().values())
    assert f"one of: {endings}." in studio("export", run, "--out", "model.exe", code=WRONG_USAGE).err
    names = ", ".join(catalog.model_exports())
    assert f"Choose one of: {names}." in studio("export", run, "--format", "exe", code=WRONG_USAGE).err


def test_export_has_the_flags_of_its_format(
    classifier_run: Path, tmp_path: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "model_exports", lambda: {"safetensors": Safetensors(), "rounded": Rounded()})
    text = studio("export", "--format", "rounded", "--help").out
    assert "--decimals N" in text and "from 0 to 8" in text and "For those who like round numbers." in text
    assert "--decimals" not in studio("export", "--help").out
    out = tmp_path / "model.rounded"
    assert "2 decimals" in studio("export", classifier_run, "--out", out, "--decimals", 2).out
    assert (
        "must be from 0 to 8" in studio("export", classifier_run, "--out", out, "--decimals", 9, code=WRONG_USAGE).err
    )
    unknown = studio("export", classifier_run, "--format", "safetensors", "--decimals", 2, code=WRONG_USAGE)
    assert "does not know '--decimals'" in unknown.err


def test_fault_34_all_runs_are_listed_the_damaged_with_the_field(
    generator_run: Path, tmp_path: Path, studio: Studio
) -> None:
    assert "There are no runs yet." in studio("runs").out
    shutil.copytree(generator_run, paths.runs() / "inside")
    copy_of(generator_run, paths.runs() / "bad", created=5)
    copy_of(generator_run, paths.runs() / "worse", class_names=None)
    (paths.runs() / "broken").mkdir()
    (paths.runs() / "broken" / "run.json").write_text("{")
    remember(generator_run)
    remember(tmp_path / "gone")
    text = " ".join(studio("runs").out.split())
    assert "inside generator discs" in text and "my generator generator discs" in text and text.count("finished") == 2
    assert text.count("damaged: ") == 3 and "'created'" in text and "gone" not in text
    rows = {Path(row["path"]).name: row for row in studio("runs", "--json").objects()}
    damaged = {name: row["problem"] for name, row in rows.items() if row["standing"] == "damaged"}
    assert set(damaged) == {"bad", "worse", "broken"}
    assert "'created' holds a whole number" in damaged["bad"] and "'class_names'" in damaged["worse"]
    assert set(rows) - set(damaged) == {"inside", "my generator"}
    assert rows["inside"]["standing"] == "finished" and rows["inside"]["progress"]["step"] == 4
    assert rows["inside"]["record"]["class_names"] == ["class0", "class1"]


def test_devices_are_listed_and_measured(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.engine.steps.benchmark.MIN_S", 0.0)
    text = studio("devices", "--measure", "--recipe", "vae", "--size", 4).out
    assert "test CPU" in text and "relative_cost = " in text
    lines = studio("devices", "--measure", "--recipe", "classifier", "--size", 4, "--json").objects()
    kinds = [item["type"] for item in lines]
    assert kinds[0] == "DevicesFound" and kinds.count("DeviceMeasured") == 2


def test_the_demo_in_the_terminal(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, studio: Studio
) -> None:
    monkeypatch.setattr(paths, "demo_sprites", lambda: folder)
    monkeypatch.setattr(demo, "COUNT", 6)
    for form in (Onnx, ExportedProgram, CFile, Script, WebPage):  # which take long
        monkeypatch.setattr(form, "missing", lambda self: "Install it.")
    own_clock(monkeypatch, look_s=0.2)
    out = tmp_path / "demo-output"
    text = studio("demo", "--terminal", "--minutes", "0.05", "--out", out).out
    models = {f"model{form.suffix}" for form in catalog.model_exports().values() if not form.missing()}
    told = {"demo-run", "new sprites.png", "new sprites enlarged.png", "loss.png"}
    assert {path.name for path in out.iterdir()} == {*told, "new sprites.json", "models"}
    cards = {f"{name}.card.{ending}" for name in models for ending in ("json", "html")}
    assert {path.name for path in (out / "models").iterdir()} == {*models, "model_loader.py", *cards}
    assert str(out) in text and all(name in text for name in {*told, *models})
    for name in ("new sprites.png", "new sprites enlarged.png"):
        assert studio("verify", out / name, "--run", out / "demo-run").out.count("ok ") == 4
    assert RunDir(out / "demo-run").progress().state == "finished"


@pytest.mark.slow
def test_the_demo_of_sets_completes_held_out_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, studio: Studio
) -> None:
    characters = tmp_path / "few characters"
    characters.mkdir()
    for sheet in sorted(paths.demo_characters().iterdir())[:60:6]:
        shutil.copy(sheet, characters)
    monkeypatch.setattr(paths, "demo_characters", lambda: characters)
    own_clock(monkeypatch, look_s=0.2)
    out = tmp_path / "demo-output"
    text = studio("demo", "--sets", "--terminal", "--minutes", "0.05", "--out", out).out
    assert "10 characters with 4 views x 4 frames: down, up, left, right" in text and f"pictures are in {out}" in text
    found = {path.name for path in out.iterdir()}
    (given,) = (name for name in found if name.endswith(" given.png"))
    name = given.removesuffix(" given.png")
    walks = {f"{name}-{view}.gif" for view in ("down", "up", "left", "right")}
    pictures = {"drawn and true.png", "loss.png", given, f"{name}.png", f"{name}.json"}
    assert found == {"demo-run", *pictures, *walks} and "drawn and true.png" in text
    true, drawn, view = (
        np.array(Image.open(path).convert("RGBA"))
        for path in (characters / f"{name}.png", out / f"{name}.png", out / given)
    )
    assert true.shape == drawn.shape and (view == true[:16, :16]).all() and (drawn[:16, :16] == view).all()
    record = RunDir(out / "demo-run").record()
    assert record.recipe == "sets" and record.cells[:2] == ("down/stand", "down/step")


def test_a_demo_that_never_trained_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, studio: Studio
) -> None:
    monkeypatch.setattr(paths, "demo_sprites", lambda: tmp_path / "gone")
    assert "gone" in studio("demo", "--terminal", "--out", tmp_path / "new", code=FAILED).err
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_demo_says_how_to_go_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, studio: Studio
) -> None:
    honest = PlainReporter.show

    def interrupted(self: PlainReporter, event: Event) -> None:
        honest(self, event)
        if isinstance(event, LossChunk) and event.first_step == 0:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(paths, "demo_sprites", lambda: folder)
    monkeypatch.setattr(PlainReporter, "show", interrupted)
    said = studio("demo", "--terminal", "--out", tmp_path / "new", code=INTERRUPTED)
    assert "Stopping and saving the run." in said.err
    assert f"studio resume {tmp_path / 'new' / 'demo-run'}" in said.out
    assert RunDir(tmp_path / "new" / "demo-run").progress().state == "stopped"
