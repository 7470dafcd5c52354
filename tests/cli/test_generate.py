"""Using models and looking at things from the command line."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from studio.cli import demo, main
from studio.cli.messages import DONE, FAILED, INTERRUPTED, WRONG_USAGE
from studio.cli.reporting import PlainReporter
from studio.core import places
from studio.core.events import Event, LossChunk
from studio.engine import catalog, devices
from studio.engine.runs.folder import RunDir
from studio.engine.runs.listing import remember
from tests.cli.tools import json_lines
from tests.engine.tools import own_clock


def test_generate_makes_a_sheet_with_what_made_it(
    generator_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sheet.png"
    words = ["generate", str(generator_run), "--count", "10", "--seed", "7", "--steps", "2", "--columns", "4"]
    assert main([*words, "--out", str(out)]) == DONE
    assert f"10 new sprites of my generator, step 4: {out}" in capsys.readouterr().out
    with Image.open(out) as picture:
        assert picture.size == (32, 24) and picture.mode == "RGBA"
        assert picture.text["seed"] == "7" and picture.text["model"] == "my generator, step 4"  # type: ignore[attr-defined]
        first = np.asarray(picture)
    about = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))
    assert [frame["filename"] for frame in about["frames"][:2]] == ["class0/class0 001", "class1/class1 001"]
    assert main([*words, "--out", str(out), "--json"]) == DONE  # the same again, beside the first
    found = json_lines(capsys.readouterr().out)
    assert found[-1] == {"type": "FilesSaved", "paths": [str(tmp_path / "sheet 2.png"), str(tmp_path / "sheet 2.json")]}
    with Image.open(tmp_path / "sheet 2.png") as picture:
        assert np.array_equal(np.asarray(picture), first)


def test_generate_makes_files_of_one_class(
    generator_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["generate", str(generator_run), "--count", "3", "--class", "class1", "--steps", "2", "--checkpoint", "4"]
    assert main([*words, "--out", str(tmp_path / "new")]) == DONE
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == [f"class1 {i}.png" for i in (1, 2, 3)]
    (tmp_path / "sprites.v2").mkdir()
    assert main([*words, "--out", str(tmp_path / "sprites.v2")]) == DONE
    assert len(list((tmp_path / "sprites.v2").iterdir())) == 3 and not list(tmp_path.glob("sprites.v2*.png"))
    assert f": {tmp_path / 'sprites.v2'}\n" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    assert main(words) == DONE
    assert (tmp_path / "my generator class1 0.png").is_file()
    capsys.readouterr()
    for wrong, said in (
        (["--class", "dragon"], "no class 'dragon'"),
        (["--checkpoint", "9"], "no checkpoint at step 9"),
        (["--device", "quantum"], "no device named 'quantum'"),
        (["--out", "sprites.gif"], "not saved as .gif"),
    ):
        assert main([*words, *wrong]) == WRONG_USAGE
        assert said in capsys.readouterr().err


def test_what_trains_nothing_probes_nothing_and_leaves_the_compiler_alone(generator_run: Path, tmp_path: Path) -> None:
    run, cpu = shutil.copytree(generator_run, tmp_path / "run"), devices._cpu()
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    record |= {"device": cpu.id, "device_name": cpu.name, "config": {**record["config"], "precision": "auto"}}
    (run / "run.json").write_text(json.dumps(record))
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
loaded = [name for name in ("torch._dynamo", "torch._inductor", "sympy", "torchvision") if name in sys.modules]
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_fault_13_a_class_name_makes_no_folder(
    generator_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shutil.copytree(generator_run, tmp_path / "copy")
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    (run / "run.json").write_text(json.dumps({**record, "class_names": ["items/sword", "../../x"]}))
    (tmp_path / "in" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "in" / "here")
    words = ["generate", str(run), "--count", "1", "--steps", "1", "--class"]
    assert (
        main([*words, "items/sword"]) == main([*words, "../../x"]) == main([*words, "../../x", "--out", "new"]) == DONE
    )
    here = {path.relative_to(tmp_path / "in" / "here").as_posix() for path in (tmp_path / "in").rglob("*.png")}
    assert here == {"copy sword 0.png", "copy x 0.png", "new/x 1.png"}


def test_a_generator_is_no_classifier(
    generator_run: Path, classifier_run: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", str(classifier_run)]) == WRONG_USAGE
    assert "it draws no sprites" in capsys.readouterr().err
    assert main(["classify", str(generator_run), str(folder)]) == WRONG_USAGE
    assert "it names no classes" in capsys.readouterr().err


def test_classify_names_classes(classifier_run: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["classify", str(classifier_run), str(folder)]) == DONE
    text = capsys.readouterr().out
    assert text.count("sprite 0") == 24 and "%" in text
    assert main(["classify", str(classifier_run), str(folder / "class0"), "--json"]) == DONE
    found = [item for item in json_lines(capsys.readouterr().out) if item["type"] == "SpriteClassified"]
    assert len(found) == 12
    assert all(abs(sum(item["classes"].values()) - 1) < 1e-4 for item in found)


def test_classify_says_that_sprites_are_left_out(
    classifier_run: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(folder / "class0", tmp_path / "copy")
    shutil.copy(copy / "sprite 001.png", copy / "twin.png")
    (copy / "text.png").write_text("no picture")
    assert main(["classify", str(classifier_run), str(copy)]) == DONE
    assert "Left out: 2; 'studio inspect' says why." in capsys.readouterr().out


def test_predict_says_numbers(
    regression_run: Path, classifier_run: Path, labelled_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(regression_run), str(labelled_folder)]) == DONE
    text = capsys.readouterr().out
    assert text.count("sprite 0") == 24 and "visible" in text and "per cent" in text
    assert main(["predict", str(regression_run), str(labelled_folder / "class0"), "--json"]) == DONE
    found = [item for item in json_lines(capsys.readouterr().out) if item["type"] == "NumbersOfSprite"]
    assert len(found) == 12 and all(set(item["numbers"]) == {"visible", "per cent"} for item in found)
    assert main(["predict", str(classifier_run), str(labelled_folder), "--json"]) == DONE
    assert json_lines(capsys.readouterr().out)[-1]["type"] == "SpriteClassified"


@pytest.mark.parametrize("name", sorted(catalog.model_exports()))
def test_export_says_how_exact_it_is_and_how_to_load_it(
    generator_run: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    form = catalog.model_exports()[name]
    target = tmp_path / f"model{form.suffix}"
    assert main(["export", str(generator_run), "--out", str(target)]) == DONE  # the ending says which format
    text = capsys.readouterr().out
    assert target.is_file() and str(target) in text and "import" in text
    assert re.search(r"the model at step 4: (exactly the same|the same to \d+ digits)\.", text)
    assert main(["export", str(generator_run), "--format", name, "--out", str(target), "--json"]) == DONE
    found = json_lines(capsys.readouterr().out)
    assert found[-1]["type"] == "Exported" and found[-1]["difference"] <= 1e-4
    assert found[-1]["paths"][0] == str(tmp_path / f"model 2{form.suffix}")
    assert any("in the way" in item.get("title", "") for item in found)


def test_export_has_a_place_and_a_format_of_its_own(
    generator_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(generator_run, tmp_path / "copy")
    assert main(["export", str(run)]) == DONE
    assert (run / "exports" / "my generator.safetensors").is_file()
    assert main(["export", str(run), "--out", "model.exe"]) == WRONG_USAGE
    assert main(["export", str(run), "--format", "exe"]) == WRONG_USAGE
    assert f"Choose one of: {', '.join(catalog.model_exports())}." in capsys.readouterr().err


def test_runs_lists_all(generator_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["runs"]) == DONE
    assert "There are no runs yet." in capsys.readouterr().out
    shutil.copytree(generator_run, places.runs() / "inside")
    (places.runs() / "broken").mkdir()
    (places.runs() / "broken" / "run.json").write_text("{")
    remember(generator_run)
    remember(tmp_path / "gone")
    assert main(["runs"]) == DONE
    text = capsys.readouterr().out
    assert text.count("my generator") == 2 and "finished" in text and "damaged" in text and "gone" not in text
    assert main(["runs", "--json"]) == DONE
    found = json_lines(capsys.readouterr().out)
    assert [item["standing"] for item in found] == ["finished", "finished", "damaged"]
    assert found[0]["record"]["class_names"] == ["class0", "class1"]


def test_inspect_says_what_is_wrong_with_which_files(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    shutil.copy(copy / "class0" / "sprite 001.png", copy / "class0" / "twin.png")
    (copy / "class1" / "text.png").write_text("no picture")
    assert main(["inspect", str(copy)]) == DONE
    text = capsys.readouterr().out
    assert "24 sprites in 2 classes, canvas 8 x 8 pixels" in text
    assert "duplicate: 1" in text and "twin.png" in text and "text.png" in text
    assert main(["inspect", str(copy), "--json", "--size", "16"]) == DONE
    said = {item["type"]: item for item in json_lines(capsys.readouterr().out) if item.get("group") != "unreadable"}
    found = said["SpritesImported"]
    assert found["sprites"]["size"] == 16 and found["proposed_size"] == 8
    assert {item["group"] for item in found["quarantine"]} >= {"duplicate"}
    assert said["Examined"]["looked_at"] == 24 and said["Finding"]["advice"]


def test_inspect_says_how_to_mend_it(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    with Image.open(copy / "class0" / "sprite 001.png") as opened:
        opened.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(copy / "class1" / "turned.png")
    assert main(["inspect", str(copy)]) == DONE
    text = capsys.readouterr().out
    flags = text.partition("Keep one of each: ")[2].splitlines()[0]
    assert flags == "--similar 'leave out'"
    assert main(["inspect", str(copy), *shlex.split(flags)]) == DONE
    text = capsys.readouterr().out
    assert "Left out as asked for: each hardly differs" in text and "Take them back: --similar keep" in text


def test_inspect_tells_of_numbers(labelled_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(labelled_folder)]) == DONE
    text = capsys.readouterr().out
    row = next(line.split() for line in text.splitlines() if line.startswith("visible"))
    assert row[:2] == ["visible", "23"] and 0 < float(row[2]) < float(row[3]) < 1
    assert "labels: 1" in text and "labels.csv: without a row in it: class0/sprite 001.png" in text
    assert main(["inspect", str(labelled_folder), "--json"]) == DONE
    found = next(line for line in json_lines(capsys.readouterr().out) if line["type"] == "SpritesImported")
    assert found["sprites"]["numbers"] == {"visible": 23, "per cent": 23}


def test_inspect_looks_into_archives(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / "discs.zip"
    with zipfile.ZipFile(archive, "w") as writer:
        for path in sorted(folder.rglob("*.png")):
            writer.write(path, path.relative_to(folder.parent))
        writer.writestr("discs/class0/text.png", "no picture")
    assert main(["inspect", str(archive)]) == DONE
    text = capsys.readouterr().out
    assert "discs: 24 sprites in 2 classes, canvas 8 x 8 pixels" in text
    assert "class0/text.png: not a picture" in text
    archive.write_bytes(archive.read_bytes()[:500])
    assert main(["inspect", str(archive)]) == FAILED
    assert "'discs.zip' can't be used: cut off" in capsys.readouterr().err


def test_devices_are_listed_and_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices", "--measure", "--recipe", "vae", "--size", "4"]) == DONE
    text = capsys.readouterr().out
    assert "test CPU" in text and "relative_cost = " in text
    words = ["devices", "--measure", "--recipe", "classifier", "--size", "4", "--json"]
    assert main(words) == DONE
    kinds = [item["type"] for item in json_lines(capsys.readouterr().out)]
    assert kinds[0] == "DevicesFound" and kinds.count("DeviceMeasured") == 2
    assert torch.get_num_threads() >= 1


def test_the_demo_in_the_terminal(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(places, "demo_sprites", lambda: folder)
    monkeypatch.setattr(demo, "COUNT", 6)
    own_clock(monkeypatch)
    out = tmp_path / "demo-output"
    assert main(["demo", "--terminal", "--minutes", "0.05", "--out", str(out)]) == DONE
    names = {path.name for path in out.iterdir()}
    assert names == {
        "demo-run", "new sprites.png", "new sprites.json", "new sprites enlarged.png", "loss.png",
        "model_loader.py", *(f"model{form.suffix}" for form in catalog.model_exports().values()),
    }  # fmt: skip
    text = capsys.readouterr().out
    assert str(out) in text and all(name in text for name in names - {"new sprites.json"})
    assert RunDir(out / "demo-run").progress().state == "finished"


def test_a_demo_that_never_trained_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(places, "demo_sprites", lambda: tmp_path / "gone")
    assert main(["demo", "--terminal", "--out", str(tmp_path / "new")]) == FAILED
    assert "gone" in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_an_interrupted_demo_says_how_to_go_on(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    honest = PlainReporter.show

    def interrupted(self: PlainReporter, event: Event) -> None:
        honest(self, event)
        if isinstance(event, LossChunk) and event.first_step == 0:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(places, "demo_sprites", lambda: folder)
    monkeypatch.setattr(PlainReporter, "show", interrupted)
    assert main(["demo", "--terminal", "--out", str(tmp_path / "new")]) == INTERRUPTED
    captured = capfd.readouterr()
    assert "Stopping and saving the work." in captured.err
    assert f"studio resume {tmp_path / 'new' / 'demo-run'}" in captured.out
    assert RunDir(tmp_path / "new" / "demo-run").progress().state == "stopped"
