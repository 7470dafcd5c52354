"""Sprites that a run keeps: imported with their origin, and refused when damaged."""

import json
from pathlib import Path

import pytest

from studio.core.errors import BadInputError
from studio.core.events import Notice
from studio.core.generators import run_to_end
from studio.data.import_result import SpritesImported
from studio.data.importing.importing import import_sprites
from studio.data.options import ImportOptions
from studio.data.store import packed
from tests.conftest import make_sprites


def test_sprites_of_a_run_are_imported_with_their_origin(tmp_path: Path) -> None:
    sprites, file = make_sprites(), tmp_path / "data.safetensors"
    packed.save(sprites, file)
    origin = {"paths": ["/art"], "options": {"shrink": 2}, "licence": "CC0 1.0"}
    (tmp_path / "run.json").write_text(json.dumps({"data_origin": origin}))
    *_, found = import_sprites([file], ImportOptions())
    assert isinstance(found, SpritesImported) and found.sprites.fingerprint == sprites.fingerprint
    assert found.sprites.origin == origin and found.sprites.title == sprites.title
    events = list(import_sprites([file], ImportOptions(leave_out=sprites.names[0], size=64)))
    found = events[-1]
    assert isinstance(found, SpritesImported) and len(found.sprites) == len(sprites) - 1
    assert found.sprites.origin["options"]["leave_out"] == sprites.names[0]
    assert any(isinstance(event, Notice) and "keep their canvas" in event.title for event in events)


def test_damaged_sprites_are_refused_and_a_damaged_record_is_ignored(tmp_path: Path) -> None:
    file, sprites = tmp_path / "data.safetensors", make_sprites()
    packed.save(sprites, file)
    (tmp_path / "run.json").write_text("[]")
    *_, found = import_sprites([file], ImportOptions())
    assert isinstance(found, SpritesImported) and found.sprites.origin["paths"] == [str(file)]
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(BadInputError, match="data"):
        run_to_end(import_sprites([file], ImportOptions()))
