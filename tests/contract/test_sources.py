"""What every kind of input and every description of a sheet must do, whoever wrote it: read its own example, and
survive the damaged twin of it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.data.atlases.base import AtlasFormat
from studio.data.atlases.formats import atlas_formats
from studio.data.files.source_files import SourceFile, SourceImage, UnreadableFile
from studio.data.reading.read import all_sources
from studio.data.sources.base import Source
from tests.data.making import found, imported, notes

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def _named(reader: Source | AtlasFormat) -> str:
    return reader.name


@pytest.fixture(params=all_sources(), ids=_named)
def source(request: pytest.FixtureRequest) -> Source:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=atlas_formats(), ids=_named)
def form(request: pytest.FixtureRequest) -> AtlasFormat:
    return request.param  # type: ignore[no-any-return]


def example_of(reader: Source | AtlasFormat, tmp_path: Path) -> Path:
    folder = tmp_path / "examples"
    folder.mkdir()
    return reader.example(folder)


def file_named(name: str) -> SourceFile:
    siblings = frozenset({"x.json", "x.atlas", "x.tres", "x.tsx", "x.ldtk", "x.xml", "caf\udce9.tres"})
    return SourceFile(f"/nowhere/{name}", name, (), "nowhere", siblings, 0, 0)


def test_those_that_are_due() -> None:
    assert {"aseprite", "idx", "picture", "sheet"} <= {source.name for source in all_sources()}
    assert {"godot", "json", "libgdx"} <= {form.name for form in atlas_formats()}


@pytest.mark.parametrize("reader", [*all_sources(), *atlas_formats()], ids=_named)
def test_its_example_in_a_folder_and_in_an_archive(reader: Source | AtlasFormat, tmp_path: Path) -> None:
    folder = example_of(reader, tmp_path).parent
    plain, packed = imported(folder), imported(Path(shutil.make_archive(str(folder), "zip", folder)))
    assert len(plain.sprites) and not plain.quarantine and not packed.quarantine
    assert packed.sprites.names == plain.sprites.names and packed.sprites.fingerprint == plain.sprites.fingerprint


def test_a_source_reads_its_example(source: Source, tmp_path: Path) -> None:
    file = found(example_of(source, tmp_path))
    assert source.claims(file)
    assert next(other for other in all_sources() if other.claims(file)).name == source.name
    pictures = [item for item in source.read(file) if isinstance(item, SourceImage)]
    assert pictures
    assert len({picture.part for picture in pictures}) == len(pictures)
    for picture in pictures:
        assert picture.rgba.dtype == np.uint8 and picture.rgba.ndim == 3 and picture.rgba.shape[2] == 4
        assert picture.rgba.flags.writeable and picture.rgba[..., 3].any()
    again = [item.rgba.tobytes() for item in source.read(file) if isinstance(item, SourceImage)]
    assert again == [picture.rgba.tobytes() for picture in pictures]


def test_a_source_claims_by_name_alone(source: Source) -> None:
    for name in ("", "x", ".png", "x.png", "x.json", "x.", "x" * 500, "caf\udce9.png"):
        assert isinstance(source.claims(file_named(name)), bool)


def test_a_source_whose_file_has_gone(source: Source, tmp_path: Path) -> None:
    example = example_of(source, tmp_path)
    file = found(example)
    shutil.rmtree(example.parent)
    with pytest.raises((OSError, UnreadableFile)):
        list(source.read(file))


def test_one_damaged_file_does_not_hold_up_the_others(source: Source, tmp_path: Path) -> None:
    example = example_of(source, tmp_path)
    other = shutil.copytree(example.parent, example.parent / "other")
    example.write_bytes(b"")
    last = imported(example.parent)
    assert len(last.sprites) and [item.name for item in last.quarantine] == [example.name]
    shutil.rmtree(other)
    with pytest.raises(BadInputError):
        imported(example.parent)


def test_a_description_gives_the_regions_of_its_example(form: AtlasFormat, tmp_path: Path) -> None:
    example = example_of(form, tmp_path)
    atlas = form.read(found(example))
    assert atlas is not None and len({region.name for region in atlas.regions}) == len(atlas.regions) == 2
    event = imported(example.parent)
    assert len(event.sprites) == 2 and event.sprites.class_names == (example.stem,)


def test_a_description_asks_names_alone(form: AtlasFormat) -> None:
    for name in ("x.png", "caf\udce9.png", ".png", "x" * 500):
        file = file_named(name)
        assert set(form.descriptions(file)) <= file.siblings


def test_a_description_of_another_picture(form: AtlasFormat, tmp_path: Path) -> None:
    example = example_of(form, tmp_path)
    for path in example.parent.iterdir():
        if path != example:
            path.write_bytes(b"[]")
    assert form.read(found(example)) is None


def test_too_large_a_description(form: AtlasFormat, tmp_path: Path) -> None:
    example = example_of(form, tmp_path)
    for name in form.descriptions(found(example)):
        (example.parent / name).write_bytes(b" " * ((8 << 20) + 1))
    if form.name == "godot":  # it looks at the beginning alone
        assert form.read(found(example)) is None
    else:
        event = imported(example.parent)
        assert (
            event.sprites.names == (example.name,) and "larger than 8 MB" in notes(event, "description")[example.name]
        )
