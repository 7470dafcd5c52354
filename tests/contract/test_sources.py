"""What every kind of input must do, whoever wrote it: read its own example, and survive the damaged twin of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.data.importing import all_sources
from studio.data.source_files import Picture, Refused, SourceFile
from studio.data.sources.base import Source
from tests.data.making import found, imported

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(params=[source.name for source in all_sources()])
def source(request: pytest.FixtureRequest) -> Source:
    return next(source for source in all_sources() if source.name == request.param)


@pytest.fixture
def example(source: Source, tmp_path: Path) -> Path:
    folder = tmp_path / "examples"
    folder.mkdir()
    return source.example(folder)


def test_the_sources_that_are_due() -> None:
    assert {"aseprite", "idx", "picture", "sheet"} <= {source.name for source in all_sources()}


def test_reads_its_example(source: Source, example: Path) -> None:
    file = found(example)
    assert source.claims(file)
    assert next(other for other in all_sources() if other.claims(file)).name == source.name
    pictures = [item for item in source.read(file) if isinstance(item, Picture)]
    assert pictures
    assert len({picture.part for picture in pictures}) == len(pictures)
    for picture in pictures:
        assert picture.rgba.dtype == np.uint8 and picture.rgba.ndim == 3 and picture.rgba.shape[2] == 4
        assert picture.rgba.flags.writeable and picture.rgba[..., 3].any()
    again = [item.rgba.tobytes() for item in source.read(file) if isinstance(item, Picture)]
    assert again == [picture.rgba.tobytes() for picture in pictures]


def test_its_example_in_a_folder_and_in_an_archive(example: Path) -> None:
    archive = shutil.make_archive(str(example.parent), "zip", example.parent)
    plain, packed = imported(example.parent), imported(Path(archive))
    assert len(plain.sprites) and not plain.quarantine and not packed.quarantine
    assert packed.sprites.names == plain.sprites.names and packed.sprites.fingerprint == plain.sprites.fingerprint


def test_claims_by_name_alone(source: Source) -> None:
    for name in ("", "x", ".png", "x.png", "x.json", "x.", "x" * 500, "caf\udce9.png"):
        file = SourceFile(f"/nowhere/{name}", name, (), "nowhere", frozenset({"x.json"}), 0, 0)
        assert isinstance(source.claims(file), bool)


def test_a_file_that_has_gone(source: Source, example: Path) -> None:
    file = found(example)
    shutil.rmtree(example.parent)
    with pytest.raises((OSError, Refused)):
        list(source.read(file))


def test_one_damaged_file_does_not_hold_up_the_others(source: Source, example: Path) -> None:
    other = example.parent / "other"
    shutil.copytree(example.parent, other)
    example.write_bytes(b"")
    last = imported(example.parent)
    assert len(last.sprites) and [item.name for item in last.quarantine] == [example.name]
    shutil.rmtree(other)
    with pytest.raises(BadInputError):
        imported(example.parent)
