"""Unicode forms in names and typed paths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from studio.core.names import existing_path

COMPOSED, DECOMPOSED = "\u00e9p\u00e9es", "e\u0301pe\u0301es"


@pytest.mark.parametrize(("on_disk", "typed"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
def test_a_typed_path_finds_a_folder_in_the_other_unicode_form(tmp_path: Path, on_disk: str, typed: str) -> None:
    (tmp_path / on_disk).mkdir()
    found = existing_path(str(tmp_path / typed))
    assert found.is_dir() and os.fspath(found) in (str(tmp_path / on_disk), str(tmp_path / typed))


@pytest.mark.parametrize("name", ["swords", COMPOSED, DECOMPOSED, "\u00e9" * 300])
def test_a_missing_path_stays_as_typed(tmp_path: Path, name: str) -> None:
    assert existing_path(str(tmp_path / name)) == tmp_path / name
