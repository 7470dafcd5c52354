"""Near colours become one."""

from __future__ import annotations

import numpy as np

from studio.core.generators import returned
from studio.data.colour.snapping import merge, places_of


def test_the_most_used_colours_stay_and_the_others_join_the_nearest() -> None:
    colours = np.array([[0, 0, 0], [1, 1, 1], [255, 0, 0], [254, 2, 1], [0, 0, 255]], np.uint8)
    counts = np.array([5, 50, 9, 3, 1])
    assert returned(merge(colours, counts, 0.05)).tolist() == [1, 1, 2, 2, 4]
    assert returned(merge(colours[:0], counts[:0], 0.02)).tolist() == []


def test_against_looking_at_all_pairs() -> None:
    rng = np.random.default_rng(0)
    colours = np.unique(rng.integers(0, 40, (300, 3), dtype=np.uint8), axis=0)
    counts = rng.integers(1, 100, len(colours))
    distance = 0.02
    becomes = returned(merge(colours, counts, distance))
    places = places_of(colours)
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    staying: list[int] = []
    for index in np.lexsort((np.arange(len(counts)), -counts)):
        near = [other for other in staying if apart[index, other] < distance]
        expected = min(near, key=lambda other: apart[index, other]) if near else index
        assert becomes[index] == expected
        if not near:
            staying.append(int(index))
    assert 10 < len(staying) < len(colours)


def test_blacks_are_as_near_as_they_look() -> None:
    """In OKLab itself, the blackest greys are 0.07 apart."""
    black, white = places_of(np.array([[0, 0, 0], [1, 1, 1]], np.uint8)), places_of(np.array([[255] * 3, [254] * 3]))
    assert np.linalg.norm(black[0] - black[1]) < 0.02 and np.linalg.norm(white[0] - white[1]) < 0.02
    assert np.allclose(places_of(np.array([[255] * 3])), [1, 0, 0], atol=1e-6)


def test_very_many_colours_are_merged_in_steps() -> None:
    colours = np.stack(np.unravel_index(np.arange(5000), (20, 20, 20)), 1).astype(np.uint8) * 12
    events = list(merge(colours, np.ones(len(colours), np.int64), 0.001))
    assert [event.done for event in events] == [0, 1024, 2048, 3072, 4096]
    assert {(event.total, event.what) for event in events} == {(5000, "colours compared")}
