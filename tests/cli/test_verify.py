"""`studio verify`, and what training and generating say for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from studio.cli.messages import FAILED
from studio.data.rights import Rights
from tests.cli.tools import Studio


def test_a_saved_sheet_and_a_model_are_verified(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    sheet, model = tmp_path / "new.png", tmp_path / "model.safetensors"
    studio("generate", generator_run, "--count", 2, "--device", "cpu", "--out", sheet)
    assert f"{model}.card.html" in studio("export", generator_run, "--out", model).out
    for path in (sheet, model):
        lines = studio("verify", path, "--run", generator_run).out.splitlines()
        assert all(line.startswith("ok  ") for line in lines[:-1]) and "Shows changes, not authorship" in lines[-1]
        path.write_bytes(path.read_bytes() + b"\0")
        said = studio("verify", path, "--run", generator_run, code=FAILED).out
        assert f"NO  {path.name} was changed" in said
    assert "contain no provenance" in studio("verify", sheet.with_suffix(".json"), code=FAILED).err
    (alone := tmp_path / "alone.safetensors").write_bytes(b"")
    assert "no card beside it" in studio("verify", alone, code=FAILED).err


@pytest.mark.parametrize("suffix", [".gif", ".aseprite", ".tres"])
def test_sprites_in_other_formats_are_verified(
    generator_run: Path, tmp_path: Path, suffix: str, studio: Studio
) -> None:
    path = tmp_path / f"new{suffix}"
    studio("generate", generator_run, "--count", 2, "--device", "cpu", "--out", path)
    lines = studio("verify", path, "--run", generator_run).out.splitlines()
    assert lines[0] == f"ok  {path.name} is unchanged since it was saved." and all(
        line.startswith("ok  ") for line in lines[:-1]
    )
    path.write_bytes(path.read_bytes() + b"\0")
    said = studio("verify", path, "--run", generator_run, code=FAILED).out
    assert f"NO  {path.name} was changed after it was saved." in said


def test_verify_prints_json(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    model = tmp_path / "model.safetensors"
    studio("export", generator_run, "--out", model)
    *_, found = studio("verify", model, "--run", generator_run, "--json").objects()
    assert found["type"] == "Verified" and [check["holds"] for check in found["checks"]] == [True] * 6


def test_pictures_tell_nothing_where_they_shall_not(generator_run: Path, tmp_path: Path, studio: Studio) -> None:
    studio("generate", generator_run, "--count", 2, "--no-texts", "--device", "cpu", "--out", tmp_path / "new.png")
    with Image.open(tmp_path / "new.png") as picture:
        picture.load()
        assert not getattr(picture, "text", {})
    assert "does not say where it comes from" in studio("verify", tmp_path / "new.png", code=FAILED).err


def test_rights_are_kept_with_the_run(
    folder: Path, tmp_path: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    def origin(name: str, *flags: str) -> dict[str, str]:
        path = tmp_path / name
        studio("train", folder, "--recipe", "vae", "--steps", 2, "--device", "cpu", "--out", path, *flags)
        found: dict[str, str] = json.loads((path / "run.json").read_text())["data_origin"]
        return {name: text for name, text in found.items() if name in ("licence", "credits")}

    assert origin("none") == {}
    assert origin("some", "--licence", "CC BY 4.0") == {"licence": "CC BY 4.0"}
    monkeypatch.setattr("studio.core.paths.demo_sprites", lambda: folder)
    assert Rights(**origin("demo", "--licence", "mine")) == Rights("mine", Rights.for_sources([folder]).credits)
