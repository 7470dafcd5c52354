"""Best-of: the sprites most like liked sprites, with the requested number per class."""

from __future__ import annotations

from unittest.mock import Mock

import numpy as np
import pytest

from studio.core.arrays import Rgba
from studio.core.errors import UsageError
from studio.core.events import Events, Progress, SpritesGenerated
from studio.data.sprites import Sprites
from studio.engine.quality import rerank
from studio.engine.quality.rerank import best_of, best_of_each_class, likeness_scores
from studio.engine.sampling.edit import EditInput
from studio.engine.sampling.settings import GenerateSettings
from tests.conftest import make_sprites


def _redness(sprites: Rgba) -> np.ndarray:
    visible = np.maximum(1, (sprites[..., 3] > 0).sum((1, 2)))
    return np.asarray((sprites[..., 0].astype(float) - sprites[..., 2]).sum((1, 2)) / visible)


def _sprites(seed: int) -> Sprites:
    """Discs in two classes, each with a hue of its own."""
    found, rng = make_sprites(per_class=60, seed=seed), np.random.default_rng(seed)
    hues = np.array([[150, 100, 110], [90, 120, 160]])[found.labels]
    tints = rng.integers(-50, 50, (len(found), 1)) * np.array([1, 0, -1])
    mottled = found.rgba[..., :3].max(-1, keepdims=True) / 255
    found.rgba[..., :3] = (hues + tints)[:, None, None] * mottled
    return found


@pytest.mark.parametrize("count", [3, 20])
def test_likeness_compares_within_a_class(count: int) -> None:
    """Red ones of one class are liked; of another class, which has a hue of its own, redder ones are taken, too."""
    before, new = _sprites(0), _sprites(1)
    reds = np.flatnonzero(before.labels == 0)[np.argsort(-_redness(before.rgba[before.labels == 0]))[:count]]
    scores = likeness_scores(new.rgba, new.labels, EditInput(before.rgba[reds], before.labels[reds]))
    for label in (0, 1):
        own = new.labels == label
        assert np.corrcoef(scores[own], _redness(new.rgba[own]))[0, 1] > 0.5
    blind = likeness_scores(new.rgba, new.labels, EditInput(before.rgba[reds], np.full(count, -1)))
    assert np.isfinite(blind).all()


def test_best_of_keeps_the_requested_classes() -> None:
    labels = np.array([0, 1, 2] * 4)
    scores = np.arange(12.0)
    assert best_of_each_class(scores, labels, 5) == [9, 10, 11, 6, 7]


def test_best_of_keeps_the_highest_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, model = _sprites(1), Mock()
    model.spec.class_names = drawn.class_names
    asked = []

    def generate(model: object, settings: GenerateSettings, silhouette: object, first: int) -> Events:
        asked.append((settings.count, silhouette, first))
        yield SpritesGenerated(drawn.rgba, drawn.labels, "model", settings.seed)

    monkeypatch.setattr(rerank, "generate", generate)
    liked = EditInput(drawn.rgba[:3], drawn.labels[:3])
    (made,) = best_of(model, GenerateSettings(count=30, best_of=4), liked)
    assert isinstance(made, SpritesGenerated) and asked == [(120, None, 0)]
    assert made.labels.tolist() == drawn.labels[:30].tolist() and len(np.unique(made.sprites, axis=0)) == 30
    for settings, few in ((GenerateSettings(best_of=2), 2), (GenerateSettings(best_of=2, tiles="corner"), 3)):
        with pytest.raises(UsageError):
            list(best_of(model, settings, EditInput(drawn.rgba[:few], drawn.labels[:few])))


def test_large_requests_are_drawn_in_parts_that_keep_their_best(monkeypatch: pytest.MonkeyPatch) -> None:
    model, asked = Mock(), list[range]()
    model.spec.class_names = ("a", "b", "c")
    rng = np.random.default_rng(0)

    def generate(model: object, settings: GenerateSettings, silhouette: object, first: int) -> Events:
        places = np.arange(first, first + settings.count)
        asked.append(range(first, first + settings.count))
        yield Progress(settings.count // 2, settings.count, "sprites drawn")
        sprites = rng.integers(0, 256, (settings.count, 2, 2, 4), dtype=np.uint8)
        yield SpritesGenerated(sprites, places % 3, "model", settings.seed)

    monkeypatch.setattr(rerank, "generate", generate)
    monkeypatch.setattr(rerank, "likeness_scores", lambda sprites, labels, liked: sprites.mean((1, 2, 3)))
    liked = EditInput(np.zeros((3, 2, 2, 4), np.uint8), np.zeros(3, np.int64))
    *told, made = best_of(model, GenerateSettings(count=1000, best_of=16), liked)
    assert isinstance(made, SpritesGenerated) and made.labels.tolist() == [place % 3 for place in range(1000)]
    assert made.sprites.shape == (1000, 2, 2, 4) and made.sprites.mean() > 150
    assert [place for part in asked for place in part] == list(range(16_000)) and max(map(len, asked)) <= 10_000
    assert [event.total for event in told if isinstance(event, Progress)] == [16_000] * len(asked)
    assert [event.done for event in told if isinstance(event, Progress)] == [
        part.start + len(part) // 2 for part in asked
    ]
