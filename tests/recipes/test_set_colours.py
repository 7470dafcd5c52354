"""Palettes of sets: indices, limits and hue turns."""

from __future__ import annotations

import pytest
import torch

from studio.recipes.base import Batch, BatchRng
from studio.recipes.set_colours import (
    TRANSPARENT,
    UNUSED,
    colours_in,
    colours_of,
    index_colours,
    nearest_allowed,
    no_palettes,
    only_allowed,
    turn_hues,
)

CLEAR, RED, DARK_RED, BLUE = [-1.0] * 4, [1.0, -1, -1, 1], [0.2, -1, -1, 1], [-1.0, -1, 1, 1]


def _sets() -> torch.Tensor:
    """Two sets of two cells of 2x2 pixels; the second set has no transparent pixel: x [2, 2, 4, 2, 2]."""
    first = [[CLEAR, RED, RED, BLUE], [CLEAR, CLEAR, DARK_RED, BLUE]]
    second = [[RED] * 4, [BLUE] * 4]
    x: torch.Tensor = torch.tensor([first, second]).permute(0, 1, 3, 2).unflatten(3, (2, 2))
    return x


def test_pixels_become_indices_of_their_sets_palette() -> None:
    x = _sets()
    index, palette = index_colours(x, 6)
    torch.testing.assert_close(colours_of(index, palette), x, atol=1 / 255, rtol=0)
    assert palette[:, TRANSPARENT].tolist() == [CLEAR] * 2
    assert (palette[..., 3] > UNUSED).sum(1).tolist() == [4, 3]  # with the transparent entry
    assert index[1].min() > TRANSPARENT


def test_too_many_colours_share_the_last_entry() -> None:
    index, palette = index_colours(_sets(), 2)
    assert index.max() == 1 and palette.shape == (2, 2, 4)


def test_only_colours_of_known_pixels_are_allowed_and_others_take_the_nearest() -> None:
    index, palette = index_colours(_sets(), 6)
    known = torch.zeros(index.shape, dtype=torch.bool)
    known[:, 0] = True  # the first cell: transparent, red, blue
    allowed = colours_in(index, known, 6)
    limited = only_allowed(palette, allowed)
    target = nearest_allowed(palette, limited).gather(1, index.flatten(1)).view_as(index)
    drawn = colours_of(target, limited)
    torch.testing.assert_close(drawn[0, 1, :, 1, 0], torch.tensor(RED))  # it was dark red
    assert (target[:, 0] == index[:, 0]).all()
    assert nearest_allowed(palette, no_palettes(2, 6)).max() == TRANSPARENT  # nothing else is allowed


@pytest.mark.parametrize("seed", range(3))
def test_hue_turns_keep_alpha_grey_and_unused_entries(seed: int) -> None:
    grey = [0.5, 0.5, 0.5, 1.0]
    palette = torch.tensor([[CLEAR, RED, grey, [UNUSED] * 4]]).expand(16, -1, -1)
    empty = torch.zeros(16, 1)
    batch = Batch(torch.zeros(16, 8, 2, 2), empty[:, 0].long(), empty, empty)
    turned = turn_hues(palette, BatchRng(torch.Generator().manual_seed(seed), batch))
    assert torch.equal(turned[..., 3], palette[..., 3]) and torch.equal(turned[:, 0], palette[:, 0])
    assert (turned[..., :3] <= 1).all()
    levels = turned[:, 2, :3]
    torch.testing.assert_close(levels, levels[:, :1].expand(-1, 3), atol=1e-5, rtol=0)  # grey stays grey
    is_same = (turned[:, 1] - palette[:, 1]).abs().amax(1) < 1e-5
    assert 0 < is_same.sum() < 16  # some palettes turn, others stay
