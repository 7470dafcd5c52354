"""Near duplicates and groups: related sprites are found, and no others."""

from __future__ import annotations

import itertools
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from studio.core.events import Progress
from studio.core.generators import run_to_end
from studio.data.similarity import groups
from studio.data.similarity.groups import find_near_duplicates, group_near_duplicates, groups_by_file
from studio.data.similarity.near_duplicates import SimilarPairs, centred, find_similar
from studio.data.sprites import Sprites
from tests.conftest import make_sprites
from tests.data.making import Pixels


def _drawings(count: int, seed: int = 0) -> Pixels:
    """Figures in three colours, each drawn at random: uint8 [count, 16, 16, 4]."""
    rng = np.random.default_rng(seed)
    palette = rng.integers(0, 256, (count, 4, 4), dtype=np.uint8)
    palette[..., 3], palette[:, 0] = 255, 0
    which = np.zeros((count, 16, 16), np.int64)
    which[:, 3:12, 4:12] = rng.integers(0, 4, (count, 9, 8))
    return palette[np.arange(count)[:, None, None], which]


def _sprites(rgba: Pixels, numbers: list[int] | None = None, classes: int = 1) -> Sprites:
    labels, names = np.arange(len(rgba)) % classes, tuple(map(str, range(len(rgba))))
    class_names = tuple(f"class {label}" for label in range(classes))
    return Sprites(rgba, labels, class_names, names, "art", groups=np.array(numbers or range(len(rgba))))


def _found(sprites: Sprites) -> list[list[int]]:
    """The groups of two sprites or more."""
    numbers = run_to_end(group_near_duplicates(sprites, None)).groups
    members = [np.flatnonzero(numbers == number).tolist() for number in np.unique(numbers)]
    return [group for group in members if len(group) > 1]


def test_unrelated_drawings_stay_separate() -> None:
    assert _found(_sprites(_drawings(80))) == []
    assert _found(make_sprites(12)) == []
    noise = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 4), dtype=np.uint8)
    noise[..., 3] = 255  # mostly different colours: any noise would be a recolour
    assert _found(_sprites(noise)) == []


def test_mirrored_recoloured_moved_and_retouched_copies_are_grouped() -> None:
    art = _drawings(60)
    mirrored, moved = art[3][:, ::-1], np.roll(art[4], (2, -1), (0, 1))
    recoloured = np.where(art[5][..., 3:] > 0, art[5] ^ np.array([255, 80, 130, 0], np.uint8), art[5])
    both = np.where(art[6][:, ::-1, 3:] > 0, art[6][:, ::-1] ^ np.array([90, 255, 7, 0], np.uint8), 0)
    retouched = art[7].copy()
    retouched[6, 6, :3] ^= 255
    added = np.stack([mirrored, moved, recoloured, both, retouched]).astype(np.uint8)
    assert _found(_sprites(np.concatenate([art, added]))) == [[3, 60], [4, 61], [5, 62], [6, 63], [7, 64]]


def test_frames_of_a_file_are_grouped_with_their_near_duplicates() -> None:
    art = np.concatenate([_drawings(90), _drawings(90)[:3, :, ::-1]])
    numbers = [0, 0, 0, *range(3, 93)]
    assert _found(_sprites(art, numbers)) == [[0, 1, 2, 90, 91, 92]]


def test_dominating_sheet_is_split_into_runs() -> None:
    first, labels = np.array([0] * 44 + list(range(44, 100))), np.zeros(100, np.int64)
    as_sheet, as_animation = (groups_by_file(first, np.full(100, kind), labels) for kind in (True, False))
    assert np.unique(as_sheet[:44], return_counts=True)[1].tolist() == [8] * 5 + [4]
    assert (as_sheet[44:] == first[44:]).all() and (as_animation == first).all()
    few = np.array([0] * 32 + [32])
    assert (groups_by_file(few, np.ones(33, bool), np.zeros(33, np.int64)) == few).all()  # as long as many an animation
    many = np.zeros(300, np.int64)
    assert len(np.unique(groups_by_file(many, np.zeros(300, bool), many))) == 38  # too long for an animation
    assert not len(groups_by_file(many[:0], np.zeros(0, bool), many[:0]))


def test_long_chain_is_cut_at_its_weakest_link() -> None:
    chain = [_drawings(1, seed=5)[0]]
    chain[0][3:12, 4:12, 3] = 255
    for step in range(1, 12):  # neighbours differ by one pixel, once by two
        chain.append(chain[-1].copy())
        rows = [4, 5] if step == 6 else [4]
        chain[-1][rows, 4 + step % 8, :3] ^= np.uint8(128 + step)
    found = _found(_sprites(np.concatenate([_drawings(60), np.stack(chain)])))
    assert sorted(itertools.chain(*found)) == list(range(60, 72))
    assert max(map(len, found)) <= 7 and [*range(60, 66)] in found


def test_very_large_sets_are_grouped_by_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(groups, "MOST_COMPARED", 10)
    art = np.concatenate([_drawings(10), _drawings(10)[:, :, ::-1]])
    sprites = _sprites(art, [0, 0, *range(2, 20)])
    assert _found(sprites) == [[0, 1]]
    alone = _sprites(art)
    assert np.array_equal(run_to_end(group_near_duplicates(alone, None)).groups, alone.groups)  # its file can be linked


def test_near_duplicates_are_searched_once(tmp_path: Path) -> None:
    recoloured = _drawings(30)[4:5] ^ np.array([255, 80, 130, 0], np.uint8)
    recoloured[recoloured[..., 3] == 0] = 0
    sprites = _sprites(np.concatenate([_drawings(30), _drawings(30)[:2, :, ::-1], recoloured]))
    first = run_to_end(find_near_duplicates(sprites, tmp_path))
    with patch.object(groups, "_search", side_effect=AssertionError):
        again = run_to_end(find_near_duplicates(sprites, tmp_path))
    for name in ("first", "second", "mirrored", "changed"):
        assert np.array_equal(getattr(first.similar, name), getattr(again.similar, name))
    assert list(zip(again.similar.first, again.similar.second, strict=True)) == [(0, 30), (1, 31)]
    assert again.copies.tolist() == first.copies.tolist() == [[0, 30], [1, 31], [4, 32]]


def test_damaged_cache_of_pairs_is_rebuilt(tmp_path: Path) -> None:
    sprites = _sprites(np.concatenate([_drawings(9), _drawings(9)[:2, :, ::-1]]))
    expected = run_to_end(find_near_duplicates(sprites, tmp_path))
    (kept,) = tmp_path.glob("twins-*.npz")
    for damage in (b"", b"PK\x03\x04", b"\x93NUMPY", b"cos\nsystem\n(S'true'\ntR."):
        kept.write_bytes(damage)
        assert np.array_equal(run_to_end(find_near_duplicates(sprites, tmp_path)).copies, expected.copies)
        assert kept.stat().st_size > len(damage)


def test_pairs_of_other_sprites_are_rejected(tmp_path: Path) -> None:
    sprites, nothing = make_sprites(5), np.zeros((0, 2), np.int64)
    run_to_end(find_near_duplicates(sprites, tmp_path))
    (kept,) = tmp_path.glob("twins-*.npz")
    for copies, similar in (
        (nothing, np.array([[0], [99], [0], [0]])),
        (nothing, np.array([[3], [1], [0], [0]])),
        (nothing, np.zeros((4, 1))),
        (nothing, np.zeros(3, np.int64)),
        (np.array([[0, 10]]), np.zeros((4, 0), np.int64)),
        (np.array([0, 1]), np.zeros((4, 0), np.int64)),
    ):
        np.savez(kept, copies=copies, similar=similar)
        found = run_to_end(find_near_duplicates(sprites, tmp_path))
        assert not len(found.copies) and not len(found.similar.first)
    (tmp_path / "file").write_text("in the way of the cache")
    assert not len(run_to_end(find_near_duplicates(sprites, tmp_path / "file")).copies)


def _solid(count: int) -> Pixels:
    """Such drawings at twice their size and without a hole."""
    rgba = _drawings(count).repeat(2, 1).repeat(2, 2)
    rgba[:, 6:24, 8:24, 3] = 255
    return rgba


def _alike(sprites: Pixels) -> dict[int, tuple[int, bool, int]]:
    """Return the earliest similar sprite for each sprite, whether mirrored, and the number of differing pixels."""
    similar: SimilarPairs = run_to_end(find_similar(sprites)).first_matches()
    rows = zip(similar.second, similar.first, similar.mirrored, similar.changed, strict=True)
    return {int(second): (int(first), bool(mirrored), int(changed)) for second, first, mirrored, changed in rows}


def test_a_moved_a_mirrored_and_a_retouched_copy() -> None:
    known = _solid(60)
    moved = np.roll(known[3], (1, -2), (0, 1))
    mirrored = known[5][:, ::-1]
    retouched = known[7].copy()
    retouched[8, 8:11, :3] = 255 - retouched[8, 8:11, :3]
    both = np.roll(known[9][:, ::-1], (2, 0), (0, 1)).copy()
    both[12, 12, :3] ^= 128
    redrawn = known[11].copy()
    redrawn[8:11, 8:20, :3] = 255 - redrawn[8:11, 8:20, :3]  # a different drawing
    found = _alike(np.concatenate([known, np.stack([moved, mirrored, retouched, both, redrawn])]))
    assert found == {60: (3, False, 0), 61: (5, True, 0), 62: (7, False, 3), 63: (9, True, 1)}


def test_a_stray_pixel_at_the_border_moves_nothing() -> None:
    y, x = np.mgrid[:32, :32]
    disc = np.zeros((32, 32, 4), np.uint8)
    disc[..., :3] = (8 * x + 4 * y)[..., None] % 256 // 64 * 60
    disc[..., 3] = np.where((y - 14) ** 2 + (x - 16) ** 2 < 130, 255, 0)
    stray = disc.copy()
    stray[27, 16] = 255  # one more visible row
    assert _alike(np.stack([disc, stray])) == {1: (0, False, 1)}


def test_first_matches_are_the_earliest() -> None:
    known = _solid(3)
    sprites = np.concatenate([known, known[1:2], known[1:2, :, ::-1]])
    assert _alike(sprites) == {3: (1, False, 0), 4: (1, True, 0)}
    pairs = run_to_end(find_similar(sprites))
    assert list(zip(pairs.first, pairs.second, strict=True)) == [(1, 3), (1, 4), (3, 4)]


@pytest.mark.parametrize("size", [1, 5, 8, 24, 33])
def test_every_canvas_size_works(size: int) -> None:
    sprites = np.random.default_rng(0).integers(0, 256, (3, size, size, 4), dtype=np.uint8)
    events = list(find_similar(sprites))
    assert events and all(isinstance(event, Progress) for event in events)


def test_centring_keeps_every_pixel() -> None:
    assert _alike(np.zeros((0, 8, 8, 4), np.uint8)) == {}
    assert centred(np.zeros((2, 8, 8, 4), np.uint8)).sum() == 0
    one = np.zeros((1, 9, 9, 4), np.uint8)
    one[0, 0:3, 5:9] = np.arange(48, dtype=np.uint8).reshape(3, 4, 4) + 1
    middle = centred(one)
    assert (middle[0, 3:6, 2:6] == one[0, 0:3, 5:9]).all() and (middle > 0).sum() == (one > 0).sum()


def test_description_of_pairs() -> None:
    similar = SimilarPairs(
        np.array([0, 0, 0]), np.array([1, 2, 3]), np.array([False, True, False]), np.array([2, 0, 0])
    )
    words = [similar.describe(pair, "a.png") for pair in range(3)]
    assert words == ["like a.png but for 2 pixels", "like a.png, mirrored", "like a.png, moved"]
