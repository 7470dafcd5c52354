"""Stored import settings: one file per set of paths, damaged files are named and kept."""

from pathlib import Path

import pytest

from studio.core import paths
from studio.data.importing.stored_options import StoredOptionsError, options_path, read_options, store_options
from studio.data.options import ImportOptions

SLICED = ImportOptions(sheets="grid", leave_out="a.png;b.png", merge_colours=0.02)


def test_settings_are_stored_for_a_set_of_paths(tmp_path: Path) -> None:
    both = [tmp_path / "a", tmp_path / "b"]
    assert read_options(both) == ImportOptions()
    store_options(both, SLICED)
    assert read_options(both[::-1]) == SLICED and read_options(both[:1]) == ImportOptions()
    (file,) = paths.import_settings().iterdir()
    assert file == options_path(both) and file.name.startswith("a-")
    store_options(both, ImportOptions())
    assert not file.exists()


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        (b"\xff", "damaged"),
        (b'{"version": 2, "paths": [], "options": {}}', "newer version"),
        (b'{"version": 1, "paths": [], "options": {"size": []}}', "'options' holds a list"),
        (b'{"version": 1, "paths": [], "options": {"size": "big"}}', "damaged"),
        (b'{"version": 1, "paths": [], "options": {"wings": 2}}', "wings"),
        (b'{"version": 1, "paths": [], "options": {"sheets": "torn"}}', "damaged"),
    ],
)
def test_damaged_settings_are_named_and_kept(tmp_path: Path, contents: bytes, reason: str) -> None:
    file = options_path([tmp_path])
    file.parent.mkdir()
    file.write_bytes(contents)
    with pytest.raises(StoredOptionsError) as raised:
        read_options([tmp_path])
    assert reason in raised.value.hint and str(file) in raised.value.hint
    store_options([tmp_path], SLICED)
    assert read_options([tmp_path]) == SLICED and file.with_suffix(".damaged").read_bytes() == contents
