"""Every kind of input, cut off anywhere and changed anyhow: what was asked for or a reason, never another exception."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.data.files.source_files import UnreadableFile
from studio.data.images.decoding import decode
from studio.data.images.kinds import sniff
from tests.data.making import sheets_recognised_once
from tests.fuzz.specimens import SPECIMENS, check_text, damaged

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # Pillow's, about damaged TIFF tags


@pytest.fixture(autouse=True, scope="module")
def _equal_sheets_recognised_once() -> Iterator[None]:
    """The picture beside a damaged description is whole: to look for a sheet in it takes half of all the time."""
    with sheets_recognised_once():
        yield


@pytest.mark.parametrize("kind", SPECIMENS)
def test_truncated_at_every_offset(kind: str, tmp_path: Path) -> None:
    specimen = SPECIMENS[kind]()
    specimen.write(tmp_path)
    assert specimen.read(tmp_path)
    path, whole = tmp_path / specimen.target, specimen.files[specimen.target]
    for length in [*range(min(len(whole), 32)), *range(32, len(whole), len(whole) // 20 + 1)]:
        path.write_bytes(whole[:length])
        came = specimen.read(tmp_path)
        assert not came or specimen.spare is None or length >= len(whole) - specimen.spare, length


@pytest.mark.parametrize("kind", SPECIMENS)
def test_random_changes(kind: str, tmp_path: Path) -> None:
    """Some of what tests/fuzz does with thousands of twins."""
    specimen = SPECIMENS[kind]()
    specimen.write(tmp_path)
    whole = specimen.files[specimen.target]
    others = (b"\0" * len(whole), b"\xff" * len(whole), whole[::-1], whole * 2, b"[]", b"{}")
    for twin in (*islice(damaged(specimen), 20), *others):
        (tmp_path / specimen.target).write_bytes(twin)
        specimen.read(tmp_path)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    start=st.sampled_from(
        [b"", b"BM", b"GIF89a", b"RIFF\0\0\0\0WEBP", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0"]
    ),
    rest=st.binary(max_size=200),
    suffix=st.sampled_from([".png", ".tga", ".jpg", ""]),
)
def test_random_bytes(start: bytes, rest: bytes, suffix: str) -> None:
    sniff(start + rest, suffix)
    try:
        decode(start + rest, suffix)
    except UnreadableFile as refused:
        check_text(refused.reason)


def test_reasons_are_printable_sentences() -> None:
    texts = set()
    for specimen in (make() for make in SPECIMENS.values()):
        data = specimen.files[specimen.target]
        for length in (0, 3, 60, len(data) // 2, len(data) - 30) if specimen.spare is not None else ():
            with pytest.raises(UnreadableFile) as caught:
                decode(data[:length], Path(specimen.target).suffix)
            texts.add(caught.value.reason)
    assert 3 < len(texts) < 12, json.dumps(sorted(texts), indent=1)
    assert all(text[0].islower() and not text.endswith(".") for text in texts)
