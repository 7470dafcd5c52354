from __future__ import annotations

import numpy as np
import pytest
import torch

from studio.data.sprites import Sprites
from studio.engine.batches import DeviceSprites, _shifted, at_most, to_input, to_rgba
from tests.conftest import make_sprites

CPU = torch.device("cpu")


def test_every_sprite_comes_once_an_epoch() -> None:
    sprites = make_sprites(per_class=5, classes=2)
    data = DeviceSprites(sprites, CPU)
    for size in (1, 3, 10, 23):
        stream = torch.cat([data._indices(step * size, size) for step in range(60 // size + 1)])
        for start in range(0, 50, 10):
            assert sorted(stream[start : start + 10].tolist()) == list(range(10))
    assert not torch.equal(data._indices(0, 10), data._indices(10, 10))
    assert not torch.equal(data._indices(0, 10), DeviceSprites(sprites, CPU, seed=1)._indices(0, 10))


def test_the_order_of_an_epoch_goes_to_a_card_without_waiting_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data, card, pinned = DeviceSprites(make_sprites(), CPU), torch.device("cuda:0"), list[torch.Tensor]()
    expected, sent = data._indices(24, 8), []

    def pin(values: torch.Tensor) -> torch.Tensor:
        pinned.append(values.clone())
        return pinned[-1]

    def to(values: torch.Tensor, device: torch.device, *, non_blocking: bool = False) -> torch.Tensor:
        sent.append((values is pinned[-1], device, non_blocking))
        return values

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    monkeypatch.setattr(torch.Tensor, "to", to)
    data._epoch, data.device = -1, card
    for offset in (0, 8, 16):
        chosen = data._indices(24 + offset, 8)
        assert offset or torch.equal(chosen, expected)
    assert sent == [(True, card, True)]


def test_pixels_are_premultiplied_and_survive_the_way_to_the_network_and_back() -> None:
    x = to_input(torch.tensor([[200], [100], [50], [51]], dtype=torch.uint8).reshape(1, 4, 1, 1))
    assert torch.allclose(x.flatten(), torch.tensor([200 / 255 * 0.2, 100 / 255 * 0.2, 50 / 255 * 0.2, 0.2]) * 2 - 1)
    rng = np.random.default_rng(0)
    rgba = rng.integers(0, 256, (20, 8, 8, 4), dtype=np.uint8)
    rgba[..., 3] = np.where(rng.random((20, 8, 8)) < 0.5, 255, 0)
    rgba[rgba[..., 3] == 0] = 0
    x = to_input(torch.from_numpy(rgba).permute(0, 3, 1, 2))
    assert float(x.min()) == -1 and float(x.max()) == 1
    assert np.array_equal(to_rgba(x).numpy(), rgba)


def test_mirrored_sprites_are_mirrored_and_told() -> None:
    sprites = make_sprites(per_class=20)
    data = DeviceSprites(sprites, CPU)
    batch = data.batch(0, 40, flip=True, shift_px=0, rng=torch.Generator().manual_seed(0))
    plain = to_input(data.rgba[data._indices(0, 40)])
    told, flipped = batch.augment_labels, batch.augment_labels[:, 0] == 1
    assert 5 < int(flipped.sum()) < 35 and not told[~flipped].any() and not told[:, 1:].any()
    expected = torch.where(flipped[:, None, None, None], plain.flip(-1), plain)
    torch.testing.assert_close(batch.x, expected)


def test_shifts_move_whole_pixels_bring_in_nothing_and_are_told() -> None:
    rgba = torch.from_numpy(make_sprites(per_class=50).rgba).permute(0, 3, 1, 2)
    moved, told = _shifted(rgba, 2, torch.Generator().manual_seed(3))
    seen = set()
    for before, after, (right, down) in zip(rgba.numpy(), moved.numpy(), told.tolist(), strict=True):
        padded = np.pad(before, ((0, 0), (2, 2), (2, 2)))
        fits = [
            (dy, dx) for dy in range(5) for dx in range(5) if np.array_equal(padded[:, dy : dy + 8, dx : dx + 8], after)
        ]
        assert (2 - 8 * down, 2 - 8 * right) in fits
        seen.update(fits)
    assert len(seen) > 15


def test_of_many_rows_some_are_taken_from_all_over_and_never_more_than_asked_for() -> None:
    for count in range(1, 60):
        found = at_most(np.arange(count), 10)
        gaps = np.diff([*found, count])
        assert len(found) == count if count <= 10 else 5 < len(found) <= 10
        assert len(set(gaps[:-1])) <= 1 and gaps[-1] <= gaps[0]
    assert len(at_most(np.arange(0), 10)) == 0


def test_rows_of_random_numbers_are_those_of_the_whole_batch(sprites: Sprites) -> None:
    batch = next(DeviceSprites(sprites, CPU).plain_batches(10, 10))
    whole = torch.Generator().manual_seed(1)
    times, noise = torch.randn(10, generator=whole), torch.rand(10, 4, 8, 8, generator=whole)
    for count in (1, 2, 4, 20):
        parts = list(batch.micro_batches(count, torch.Generator().manual_seed(1)))
        assert len(parts) == min(count, 10)
        drawn = [(rng.randn(), rng.rand(4, 8, 8)) for _, rng in parts]
        assert torch.equal(torch.cat([one for one, _ in drawn]), times)
        assert torch.equal(torch.cat([one for _, one in drawn]), noise)
        assert torch.equal(torch.cat([part.x for part, _ in parts]), batch.x)
