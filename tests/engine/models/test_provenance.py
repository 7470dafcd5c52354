"""Cards, seals and what is said of them: whole, changed by one byte, of another run."""

from __future__ import annotations

import dataclasses
import json
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open

from studio.core.errors import BadInputError
from studio.core.events import Exported, Verified
from studio.data.rights import Rights
from studio.data.store import packed
from studio.engine.models.exporting import export
from studio.engine.models.loading import load_model
from studio.engine.models.provenance import model_provenance, verify, weights_sha256
from studio.engine.runs.analysis.timelapse import timelapse
from studio.engine.runs.folder import RunDir
from studio.exports import model_cards, png
from studio.exports.sprites.apng import Apng
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.formats import sprite_exports
from tests.conftest import make_sprites
from tests.engine.tools import CPU, bomb_png, kept_run, of_kind, train_toy

RIGHTS = Rights("CC0 1.0", "drawn by <b>artists</b>")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept_run(tmp_path_factory, RIGHTS.add_to(make_sprites()), train_toy, steps=6)


@pytest.fixture
def run(kept: Path, tmp_path: Path) -> Path:
    """A copy of the run."""
    return Path(shutil.copytree(kept, tmp_path / "run"))


def exported(run: Path, form: str, target: Path) -> Exported:
    return of_kind(list(export(load_model(run, "last", CPU), form, target)), Exported)[0]


def verified(path: Path, run: Path | None = None) -> Verified:
    return of_kind(list(verify(path, run)), Verified)[0]


def picture(run: Path, path: Path, step: int = 6) -> Path:
    """A sprite of the run's newest model, saved; another step is not true."""
    source = model_provenance(load_model(run, "last", CPU))
    assert source is not None and source.step == 6
    source = dataclasses.replace(source, step=step)
    rgba = np.random.default_rng(0).integers(0, 256, (1, 8, 8, 4), np.uint8)
    return png.save_files(
        path.parent, rgba, [path.stem], {"Seed": "7", **model_cards.provenance_metadata([source.to_json()])}
    )[0]


def test_a_picture_with_too_many_pixels_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "bomb.png").write_bytes(bomb_png())
    with pytest.raises(BadInputError, match=r"bomb\.png is too large"):
        verified(tmp_path / "bomb.png")


@pytest.mark.parametrize("name", ["../elsewhere.pt", "a/b.pt", "/etc/passwd", ".", "", "a\0b", "\udc80\ud800"])
def test_model_card_with_a_path_outside_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    source = model_cards.ModelSource("studio", "run", "generator", 1, "", "data", 1, "")
    card = model_cards.Card(source, "2026-01-01", "CPU", 8, ("a",), {}, {}, files={name: "0" * 64})
    path = tmp_path / "model.pt.card.json"
    path.write_bytes(card.to_json())
    found = verified(path)
    assert not found.holds and "not a card" in found.checks[0].words


@pytest.mark.parametrize(("form", "files"), [("safetensors", 1), ("state_dict", 2)])
def test_every_file_of_an_export_is_checked_to_the_byte(run: Path, form: str, files: int, tmp_path: Path) -> None:
    done = exported(run, form, tmp_path / "out/model")
    belongs = [*done.paths, *done.card]
    assert len(done.paths) == files and len(done.card) == 2
    for path in belongs:
        found = verified(path, run)
        assert found.holds and len(found.checks) == files + 2 + 3 and all(check.holds for check in found.checks)
    for path in belongs:
        whole = path.read_bytes()
        for place in (0, len(whole) // 2, len(whole) - 1):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            assert not verified(done.paths[0], run).holds, f"{path.name}, byte {place}"
        path.unlink()
        if path != done.card[0]:
            assert not verified(done.card[0]).holds
        path.write_bytes(whole)
    assert verified(done.paths[-1]).holds


@pytest.mark.parametrize("form", ["safetensors", "state_dict"])
def test_one_model_is_one_file_whenever_it_is_exported(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    first = exported(run, form, tmp_path / "first/model")
    monkeypatch.setattr("time.localtime", lambda *_: (2031, 2, 3, 4, 5, 6, 0, 34, 0))  # what archives note
    later = exported(run, form, tmp_path / "later/model")
    for one, other in zip([*first.paths, *first.card], [*later.paths, *later.card], strict=True):
        assert one.read_bytes() == other.read_bytes(), one.name


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_no_byte_of_a_picture_can_be_changed(run: Path, tmp_path: Path, every: int) -> None:
    path = picture(run, tmp_path / "sprite.png")
    assert verified(path, run).holds
    whole = path.read_bytes()
    for place in range(0, len(whole), every):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert not verified(path, run).holds, place
        except BadInputError:
            continue
    path.write_bytes(whole + b"\0")
    assert not verified(path, run).holds


@pytest.mark.parametrize("every", [23, pytest.param(7, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", ["gif", "aseprite", "godot"])
def test_no_byte_of_a_saved_animation_can_be_changed(run: Path, form: str, tmp_path: Path, every: int) -> None:
    source = model_provenance(load_model(run, "last", CPU))
    assert source is not None
    about = {
        "model": 'my "model"\nProvenance: none',
        "Seed": "7",
        **model_cards.provenance_metadata([source.to_json()] * 2),
    }
    sprites = SpriteSet(make_sprites().rgba[:3], classes=["a", "a", "b"], about=about)
    path = sprite_exports()[form].write(sprites, tmp_path / "new")[0]
    assert verified(path, run).holds
    whole = path.read_bytes()
    for place in range(0, len(whole), every):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert not verified(path, run).holds, place
        except BadInputError:
            continue
    path.write_bytes(b"")
    with pytest.raises(BadInputError, match="does not say where it comes from"):
        verified(path)
    path.unlink()
    with pytest.raises(BadInputError, match="can't be read"):
        verified(path)


def test_formats_without_a_note_are_named(tmp_path: Path) -> None:
    (tmp_path / "colours.gpl").write_text("GIMP Palette")
    with pytest.raises(BadInputError, match="contain no provenance") as refused:
        verified(tmp_path / "colours.gpl")
    assert ".aseprite, .gif, .png and .tres" in refused.value.hint


def test_a_picture_that_another_program_saved_again_says_so(run: Path, tmp_path: Path) -> None:
    path = picture(run, tmp_path / "sprite.png")
    with Image.open(path) as image:
        image.save(tmp_path / "bare.png")
    with pytest.raises(BadInputError, match="does not say where it comes from"):
        verified(tmp_path / "bare.png")


def test_an_animation_is_sealed_as_well(run: Path, tmp_path: Path) -> None:
    samples = RunDir(run).samples
    samples.mkdir(exist_ok=True)
    Image.fromarray(make_sprites().rgba[0]).save(samples / "00000004.png")
    path = Apng().write(timelapse(run), tmp_path / "film.apng")[0]
    found = verified(path, run)
    assert found.holds and [check.holds for check in found.checks] == [True, True, True]  # no weights: of many steps
    whole = bytearray(path.read_bytes())
    whole[-200] ^= 1
    path.write_bytes(whole)
    assert not verified(path, run).holds


def test_foreign_files_and_runs_fail_verification(
    run: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = picture(run, tmp_path / "sprite.png")
    other = kept_run(tmp_path_factory, make_sprites(seed=5), train_toy, steps=6)
    assert [check.holds for check in verified(path, other).checks] == [True, False, False, False]
    record = run / "run.json"
    whole = record.read_bytes()
    record.write_bytes(whole.replace(b'"seed": 0', b'"seed": 1'))
    assert [check.holds for check in verified(path, run).checks] == [True, False, True, True]
    record.write_bytes(whole)
    sprites = packed.load(run / "data.safetensors")
    changed = sprites.rgba.copy()
    changed[0, 4, 4, 0] ^= 1
    packed.save(dataclasses.replace(sprites, rgba=changed), run / "data.safetensors")
    assert [check.holds for check in verified(path, run).checks] == [True, True, False, True]


def test_deleted_checkpoint_makes_weights_unverifiable(run: Path, tmp_path: Path) -> None:
    found = verified(picture(run, tmp_path / "sprite.png", step=7), run)
    assert found.checks[-1].holds is None and "has deleted" in found.checks[-1].words and found.holds


def test_the_run_is_found_by_itself(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = picture(run, tmp_path / "sprite.png")
    unknown = verified(path)
    assert unknown.holds and unknown.checks[-1].holds is None and "was not found" in unknown.checks[-1].words
    monkeypatch.setattr("studio.engine.models.provenance.remembered_runs", lambda: [run])
    assert [check.holds for check in verified(path).checks] == [True] * 4


def test_a_file_without_a_card_is_refused(run: Path, tmp_path: Path) -> None:
    done = exported(run, "safetensors", tmp_path / "model")
    for path in done.card:
        path.unlink()
    with pytest.raises(BadInputError, match="no card"):
        verified(done.paths[0])
    with pytest.raises(BadInputError, match="does not exist"):
        verified(tmp_path / "gone.pt")


def test_exports_carry_what_the_run_is_known_by(run: Path, tmp_path: Path) -> None:
    model = load_model(run, "last", CPU)
    source = model_provenance(model)
    assert source is not None and (source.licence, source.credits) == (RIGHTS.licence, RIGHTS.credits)
    with safe_open(exported(run, "safetensors", tmp_path / "model").paths[0], "pt") as file:
        assert source.checksums().items() <= file.metadata().items()
    weights = exported(run, "state_dict", tmp_path / "model").paths[0]
    with zipfile.ZipFile(weights) as archive:
        assert json.loads(archive.read("archive/source.json")) == source.checksums()
    assert weights_sha256(torch.load(weights, weights_only=True)) == source.weights_sha256  # whatever file they are in


def test_card_page_shows_the_provenance(run: Path, tmp_path: Path) -> None:
    run_json = json.loads((run / "run.json").read_text())
    assert run_json["data_origin"] == {"licence": RIGHTS.licence, "credits": RIGHTS.credits}
    with (run / "metrics.jsonl").open("a") as file:
        for step, share in ((4, 0.25), (9, 0.5)):  # the second is of a later model
            quality = {"kid": 0.1, "kid_error": 0.1, "kid_real": 0.1, "copies": share, "copies_real": 0.125}
            file.write(json.dumps({"step": step, "quality": quality}) + "\n")
    done = exported(run, "safetensors", tmp_path / "model")
    card = model_cards.read_card(done.card[0])
    assert card.copies == model_cards.Copies(4, 0.25, 0.125) and card.settings == run_json["config"]
    said = model_cards.disclosure(card)
    assert "24 sprites" in said and "(CC0 1.0, drawn by" in said and "25 %" in said and "trained from scratch" in said
    page = done.card[1].read_text()
    assert "drawn by &lt;b&gt;artists&lt;/b&gt;" in page and "<b>" not in page
    assert all(value in page for value in (card.source.weights_sha256, card.files["model.safetensors"], "class1"))


def test_newer_model_card_is_not_reported_as_damaged(run: Path, tmp_path: Path) -> None:
    done = exported(run, "safetensors", tmp_path / "model")
    values = json.loads(done.card[0].read_text())
    done.card[0].write_text(json.dumps({**values, "format": model_cards.FORMAT + 1}))
    with pytest.raises(BadInputError, match="newer version"):
        verified(done.paths[0])


def test_ancestors_are_in_the_provenance() -> None:
    parent = {"title": "starter", "step": 5500, "data_title": "tiles", "licence": "CC0-1.0"}
    source = model_cards.ModelSource("Studio", "mine", "generator", 9, "a", "gems", 60, "c", started_from=(parent,))
    card = model_cards.Card(source, "today", "CPU", 16, ("gem",), {}, {})
    assert "started from a model trained on 'tiles' (CC0-1.0)" in model_cards.disclosure(card)
    assert "starter, step 5,500, trained on tiles (CC0-1.0)" in model_cards.card_page(card).decode()


def test_rights_are_added_to_and_removed_from_sprites() -> None:
    sprites = make_sprites().with_origin({"paths": ["a"]})
    told = RIGHTS.add_to(sprites)
    assert told.origin == {"paths": ["a"], "licence": RIGHTS.licence, "credits": RIGHTS.credits}
    assert Rights(" ", "").add_to(told).origin == {"paths": ["a"]} and told.fingerprint == sprites.fingerprint


def test_png_without_metadata_has_no_text_chunks(tmp_path: Path) -> None:
    path = png.save_files(tmp_path, make_sprites().rgba[:1], ["plain"], {})[0]
    with Image.open(path) as image:
        image.load()
        assert not getattr(image, "text", {})
