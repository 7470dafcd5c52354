"""What every description of a sheet must do, whoever wrote it: read its own example, survive the damaged twin of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from studio.core.errors import BadInputError
from studio.data.atlases.base import AtlasFormat
from studio.data.source_files import SourceFile
from studio.data.sources.sheet import atlas_formats
from tests.data.making import found, imported


@pytest.fixture(params=[form.name for form in atlas_formats()])
def form(request: pytest.FixtureRequest) -> AtlasFormat:
    return next(form for form in atlas_formats() if form.name == request.param)


@pytest.fixture
def example(form: AtlasFormat, tmp_path: Path) -> Path:
    folder = tmp_path / "examples"
    folder.mkdir()
    return form.example(folder)


def test_the_formats_that_are_due() -> None:
    assert {"godot", "json", "libgdx"} <= {form.name for form in atlas_formats()}


def test_reads_its_example_in_a_folder_and_in_an_archive(form: AtlasFormat, example: Path) -> None:
    file = found(example)
    assert form.descriptions(file)
    regions = form.regions(file)
    assert regions is not None and len({region.name for region in regions}) == len(regions) == 2
    event = imported(example.parent)
    assert len(event.sprites) == 2 and not event.quarantine and event.sprites.class_names == (example.stem,)
    packed = imported(Path(shutil.make_archive(str(example.parent), "zip", example.parent)))
    assert packed.sprites.names == event.sprites.names and packed.sprites.fingerprint == event.sprites.fingerprint


def test_asks_names_alone(form: AtlasFormat) -> None:
    names = frozenset({"x.json", "x.atlas", "x.tres", "caf\udce9.tres"})
    for name in ("x.png", "caf\udce9.png", ".png", "x" * 500):
        assert set(form.descriptions(SourceFile(f"/nowhere/{name}", name, (), "nowhere", names, 0, 0))) <= names


def test_about_another_picture(form: AtlasFormat, example: Path) -> None:
    for path in example.parent.iterdir():
        if path != example:
            path.write_bytes(b"[]")
    assert form.regions(found(example)) is None


def test_too_large_a_description(form: AtlasFormat, example: Path) -> None:
    for name in form.descriptions(found(example)):
        (example.parent / name).write_bytes(b" " * ((8 << 20) + 1))
    if form.name == "godot":  # it looks at the beginning alone
        assert form.regions(found(example)) is None
    else:
        with pytest.raises(BadInputError, match="larger than 8 MB"):
            imported(example.parent)
