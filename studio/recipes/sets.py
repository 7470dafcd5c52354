"""Sets: draw missing views and frames of a character from given views and frames.

The network sees the cells of a set together. For a missing pixel, the network chooses among the given cells' colours:
see `set_colours` and `set_network`. In training, random cells of a set and random pixels in other cells are known; the
loss is the cross-entropy of the missing pixels. Drawing takes a few rounds: a round draws every missing pixel and keeps
the most certain pixels (MaskGIT, Chang et al. 2022), so pixels and cells fit together. Drawing a new character starts
with the first cell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studio.core.arrays import Indices
from studio.core.config import TrainingConfig, Value, setting, with_default
from studio.core.errors import TrainingError
from studio.core.formatting import count
from studio.core.metrics import EXACT
from studio.data.sprites import Examples, Sprites, unstack
from studio.recipes.base import Batch, BatchRng, CellSlices, Evaluation, Preset, Recipe, Spec, TrainingBudget
from studio.recipes.capabilities import SetCondition
from studio.recipes.layers import whole_groups
from studio.recipes.planning import Planner
from studio.recipes.set_colours import (
    colours_in,
    colours_of,
    count_colours,
    index_colours,
    nearest_allowed,
    no_palettes,
    only_allowed,
    trimmed,
    turn_hues,
)
from studio.recipes.set_mirrors import find_partners
from studio.recipes.set_network import SetNetwork, cell_slices, mirrored_odds
from studio.recipes.set_tasks import ExactShares, first_of_rows, tasks_of


@dataclass(frozen=True)
class SetsConfig(TrainingConfig):
    """Settings for training a model of sets."""

    noun = "character"
    batch_size: int = with_default(TrainingConfig, "batch_size", 16)
    learning_rate: float = with_default(TrainingConfig, "learning_rate", 2e-3)
    flip: bool = with_default(TrainingConfig, "flip", True)
    holdout: float = with_default(TrainingConfig, "holdout", 0.1)
    width: int = setting(
        32, "Channels of the network's first level. More channels learn finer detail and train slower.",
        low=16, high=512,
    )  # fmt: skip
    colours: int = setting(
        64, "Largest number of colours of a set. Sets with more colours are left out.",
        unit="colours", label="Palette", low=4, high=256, advanced=True,
    )  # fmt: skip

    dropout: float = setting(
        0.1, "Share of channels dropped in each step. Dropping channels delays learning few characters by heart.",
        low=0.0, high=0.9, low_text="Off", advanced=True,
    )  # fmt: skip
    mix_share: float = setting(
        0.7, "Share of the training characters that get the lower part of another character. Mixing teaches more from "
        "few characters.",
        label="Mix characters", low=0.0, high=1.0, low_text="Off", advanced=True,
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "width", whole_groups(self.width))


_PLANNER = Planner(
    width=SetsConfig.width,
    widths=(16, 32, 48, 64),
    slowing=1.4,
    most_epochs=2000,
    most_tuning_epochs=1000,
    noun=SetsConfig.noun,
)
_FEWEST_SETS = 8
_RAREST = 0.1  # leave out cells that occur in a smaller share of the sets
_PALETTES = 64  # training sets' palettes to keep for drawing new sets
# Shares of the training examples: no cell given, the first cell, the first cell of each row; else random cells.
_NONE, _FIRST, _FIRST_OF_ROWS = 0.1, 0.5, 0.15
_REVEALED = 0.25  # share of the training examples with known pixels in missing cells
_HIGHEST_CUT, _LOWEST_CUT = 0.25, 0.85  # limits of the cut between mixed characters, share of height from the top
_NEW_HEAT = 3.0  # noise on the certainty of a new character's first cell: without it, the certain pixels make blobs
_SMALLEST = 1e-9  # odds, before their logarithm
_WHOLE_PALETTE = 0.25  # share of the training examples with colours of unknown pixels in the palette


class Sets(Recipe[SetsConfig, SetNetwork]):
    """Model that completes sets: the views and frames of characters."""

    name = "sets"
    title = "Sets"
    summary = "Learns to draw the missing views and frames of a character."
    makes = "sets"
    Config, Network = SetsConfig, SetNetwork
    headline = EXACT
    order = 5
    relative_cost = 68.0  # measured with sets of 16 cells and 12 colours
    small = SetsConfig(width=16, colours=16, batch_size=8, dropout=0.0, mix_share=0.0)
    fixed_by_weights = ("width",)

    def obstacle(self, sprites: Sprites) -> str:
        if not len(sprites.sets):
            return "These sprites have no views or frames. Open sheets of characters."
        usable = int((sprites.sets.present.sum(1) > 1).sum())
        if usable < _FEWEST_SETS:
            return f"{count(usable, 'character')} with several views or frames. Open at least {_FEWEST_SETS}."
        return ""

    def select(self, sprites: Sprites, config: SetsConfig) -> tuple[Sprites, list[str]]:
        """Return the sprites of usable sets in a single class, and a sentence about every group left out."""
        layout, notes = sprites.sets, list[str]()
        if not len(layout):
            hint = "Open sheets or folders of characters, and choose how to find sets in the import settings."
            raise TrainingError("These sprites form no sets of views or frames.", hint)
        shares = layout.present.mean(0)  # float64 [C], share of sets with the cell
        is_common = shares >= min(_RAREST, shares.max())
        if not is_common.all():
            rare = layout.part(np.zeros(len(layout), np.bool_), ~is_common).cells
            notes.append(f"Left out, in too few sets: {', '.join(rare)}.")
        is_whole = layout.present[:, is_common].sum(1) >= 2  # bool [S]
        has_too_many = is_whole & (_colour_counts(sprites) > config.colours)
        if has_too_many.any():
            notes.append(f"Left out, more than {config.colours} colours: {count(int(has_too_many.sum()), 'set')}.")
        is_kept = is_whole & ~has_too_many
        if is_kept.sum() < _FEWEST_SETS:
            title = f"{count(int(is_kept.sum()), 'set')} with two or more cells: too few to learn from."
            raise TrainingError(title, f"Open at least {_FEWEST_SETS} characters.")
        chosen = sprites.of_sets(layout.part(is_kept, is_common))
        return replace(chosen, labels=np.zeros(len(chosen), np.int64), class_names=("",)), notes

    def examples(self, sprites: Sprites, indices: Indices) -> tuple[Examples, Indices]:
        stacked = sprites.stacked_sets(indices)
        return stacked, np.arange(len(stacked))

    def presets(self, budget: TrainingBudget) -> tuple[Preset, ...]:
        return (
            _PLANNER.preset("Quick", "Shapes and colours of the other views.", 2.0, 10_000, budget),
            _PLANNER.preset("Standard", "Views and frames that need few corrections.", 10.0, 40_000, budget),
            _PLANNER.preset("Best", "Finer detail, for a longer break.", 30.0, 100_000, budget),
        )

    def arguments(self, config: SetsConfig, spec: Spec) -> dict[str, Value]:
        cells = max(2, len(spec.cells))
        return {"cells": cells, "width": config.width, "colours": config.colours, "palettes": _PALETTES}

    def cell_slices(self, spec: Spec) -> Mapping[str, tuple[CellSlices, ...]]:
        return cell_slices(spec.cells)

    def statistics(self, sprites: Sprites, config: SetsConfig) -> Mapping[str, Tensor]:
        """Compute the network's buffers: palettes of training sets, first cells of rows, and mirrored cells."""
        stacked, palettes = sprites.stacked_sets(np.arange(len(sprites))), no_palettes(_PALETTES, config.colours)
        spread = np.linspace(0, len(stacked) - 1, min(_PALETTES, len(stacked))).round().astype(np.int64)
        for row, number in enumerate(np.resize(spread, _PALETTES).tolist()):
            cells = torch.from_numpy(stacked.rgba[number].copy()).float().unflatten(2, (-1, 4)) / 255  # [S, S, C, 4]
            x = torch.cat([cells[..., :3] * cells[..., 3:], cells[..., 3:]], 3) * 2 - 1
            palettes[row] = index_colours(x.permute(2, 3, 0, 1)[None], config.colours)[1][0]
        partners, shares = find_partners(unstack(stacked.rgba), stacked.targets > 0)
        leads = torch.tensor(first_of_rows(sprites.sets.cells))
        mirrors = {"partners": torch.from_numpy(partners), "mirrored": torch.from_numpy(shares)}
        return {"palettes": palettes, "leads": leads, **mirrors}

    def loss(self, network: SetNetwork, batch: Batch, config: SetsConfig, rng: BatchRng) -> Tensor:
        x, present = _mixed(network, batch, config, rng)
        index, palette = index_colours(x, config.colours)
        palette = turn_hues(trimmed(palette), rng)
        given = _random_given(present, network.leads, rng)
        known = given[:, :, None, None] | _random_pixels(given, index, rng)
        known &= present[:, :, None, None]
        allowed = colours_in(index, known, palette.shape[1])
        allowed |= (rng.rand(1) < _WHOLE_PALETTE) | ~given.any(1, keepdim=True)
        limited = only_allowed(palette, allowed)
        target = nearest_allowed(palette, limited).gather(1, index.flatten(1)).view_as(index)
        missing = (present[:, :, None, None] & ~known).float()
        masks = [(rng.rand(width) >= config.dropout) / (1 - config.dropout) for width in network.widths]
        errors = _errors(network(target, limited, known.float(), masks), target) * missing
        # The mean over a set's missing pixels, then over the sets: sets count equally.
        return (errors.flatten(1).sum(1) / missing.flatten(1).sum(1).clamp(min=1)).mean()

    def evaluate(self, network: SetNetwork, batches: Iterable[Batch], config: SetsConfig, spec: Spec) -> Evaluation:
        """Compute the loss, and the shares of exactly right pixels in cells with the most likely colours.

        The loss is computed for all cells except the first, given the first cell. The baseline copies given cells.
        """
        drawn, repeated, total, pixels = ExactShares(), ExactShares(), 0.0, 0
        for batch in batches:
            x, present = _cells_of(network, batch)
            index, palette = index_colours(x, config.colours)
            palette = trimmed(palette)
            for task in tasks_of(spec.cells, network.partners.tolist()):
                given = torch.tensor(task.given, device=x.device) & present  # bool [B, C]
                known = given[:, :, None, None].expand_as(index)
                missing = present & ~given & given.any(1, keepdim=True)  # skips sets without the given cells
                limited = only_allowed(palette, colours_in(index, known, palette.shape[1]))
                odds = mirrored_odds(network, index, limited, known.float())
                drawn.add(task, x, colours_of(odds.argmax(2), limited), missing)
                repeated.add(task, x, task.baseline(x), missing)
                if task.name == EXACT.name:
                    target = nearest_allowed(palette, limited).gather(1, index.flatten(1)).view_as(index)
                    total += float((_errors(odds.clamp(min=_SMALLEST).log(), target) * missing[:, :, None, None]).sum())
                    pixels += int(missing.sum()) * index[0, 0].numel()
        return Evaluation({"loss": total / max(1, pixels), **drawn.shares()}, baseline=repeated.shares())

    @staticmethod
    def complete(
        network: SetNetwork, condition: SetCondition, chances: Tensor, variety: float | Tensor
    ) -> Iterator[Tensor]:
        palette, rounds = trimmed(condition.palette), chances.shape[1]
        known = condition.given[:, :, None, None].expand_as(condition.index)
        index, is_new = condition.index * known, ~condition.given.any(1)[:, None, None, None]  # is_new: [N, 1, 1, 1]
        # Rounds draw a new character's first cell; the last round draws the other cells from the first cell.
        is_other = (torch.arange(known.shape[1], device=known.device) > 0)[:, None, None]
        waits = (is_new & is_other).expand_as(known)
        waiting, hidden = (pixels.flatten(1).sum(1) for pixels in (waits, ~known & ~waits))  # int64 [N] each
        variety = torch.as_tensor(variety, dtype=torch.float32, device=known.device).view(-1, 1, 1, 1)
        for number in range(rounds):
            is_last = number == rounds - 1
            temperature = torch.where(is_new, 0.0 if is_last else 1.0, variety)  # float32 [N, 1, 1, 1]
            heat = torch.where(is_new, _NEW_HEAT, variety) * (1 - number / rounds)
            logits = mirrored_odds(network, index, palette, known.float()).clamp(min=_SMALLEST).log()
            drawn, certainty = _draw_colours(logits, chances[:, number], temperature, heat)
            index = torch.where(known, index, drawn)
            yield index
            if is_last:
                break
            ends = torch.where(is_new, rounds - 1, rounds)
            share = torch.cos(math.pi / 2 * (number + 1) / ends) * (temperature > 0)  # 0: one round for all
            left = waiting + (hidden * share.flatten()).long()  # [N], pixels that stay missing
            certainty = torch.where(waits, -math.inf, torch.where(known, math.inf, certainty))
            least_certain_first = certainty.flatten(1).sort(1).values
            known = certainty >= least_certain_first.gather(1, left[:, None])[:, :, None, None]


def _colour_counts(sprites: Sprites) -> NDArray[np.int64]:
    """Count the colours of every set, including transparency: int64 [S]."""
    pixels = np.ascontiguousarray(sprites.rgba).view("<u4").reshape(len(sprites), -1)  # [N, S * S]
    sets = zip(sprites.sets.table, sprites.sets.present, strict=True)
    return np.array([len(np.unique(np.append(pixels[row[there]], 0))) for row, there in sets], np.int64)


def _cells_of(network: SetNetwork, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the cells of a batch, x [B, C, 4, S, S], and whether a set has the cell, bool [B, C].

    The augmentation mirrors the pixels of some sets; here their left cells become right cells, too.
    """
    x, present, partners = batch.x.unflatten(1, (-1, 4)), batch.targets > 0, network.partners
    is_flipped, other = batch.augment_labels[:, :1] > 0, partners.clamp(min=0)
    x = torch.where(is_flipped[:, :, None, None, None], x[:, other], x)
    return x, torch.where(is_flipped, present[:, other] & (partners >= 0), present)


def _mixed(network: SetNetwork, batch: Batch, config: SetsConfig, rng: BatchRng) -> tuple[Tensor, Tensor]:
    """Return cells like `_cells_of`, but mix some sets: pixel rows below a random height come from the previous set.

    A head has equal height in a character's views and frames, so a mixed set is a possible character: one set's head on
    another set's body. A set stays unmixed if the mixture would have too many colours.
    """
    (x, present), (other, other_present) = _cells_of(network, batch), _cells_of(network, rng.previous())
    height = x.shape[3]
    rows = torch.arange(height, device=x.device)
    is_visible = (x[:, :, 3] > -1).any(3).any(1)  # bool [B, S], rows of pixels
    top, bottom = torch.where(is_visible, rows, height).amin(1), torch.where(is_visible, rows, -1).amax(1) + 1  # [B]
    cut = (top + (bottom - top) * (_HIGHEST_CUT + (_LOWEST_CUT - _HIGHEST_CUT) * rng.rand())).round()
    mixed = torch.where((rows >= cut[:, None])[:, None, None, :, None], other, x)
    both = present & other_present
    chosen = (rng.rand() < config.mix_share) & (count_colours(mixed) <= config.colours) & (both.sum(1) > 1)  # [B]
    return torch.where(chosen[:, None, None, None, None], mixed, x), torch.where(chosen[:, None], both, present)


def _random_given(present: Tensor, leads: Tensor, rng: BatchRng) -> Tensor:
    """Choose the given cells of each set at random: bool [B, C]. present: bool [B, C]. leads: bool [C]."""
    kind, share = rng.rand(1), rng.rand(1)  # [B, 1] each
    given = (rng.rand(present.shape[1]) < share) & (kind >= _NONE)
    first = torch.arange(len(leads), device=leads.device) == 0
    given = torch.where(kind >= 1 - _FIRST - _FIRST_OF_ROWS, leads, given)
    given = torch.where(kind >= 1 - _FIRST, first, given) & present
    return given & (given != present).any(1, keepdim=True)  # no loss without missing cells


def _random_pixels(given: Tensor, index: Tensor, rng: BatchRng) -> Tensor:
    """Choose the known pixels of missing cells at random: bool [B, C, S, S].

    given: bool [B, C]. index: [B, C, S, S]. Without given cells, pixels of the first cell are known, as in drawing.
    """
    share = (rng.rand(1) < _REVEALED) * rng.rand(1)  # [B, 1], of a missing cell's pixels
    is_first = torch.arange(given.shape[1], device=given.device) == 0
    shares = torch.where(given.any(1, keepdim=True), share, rng.rand(1) * is_first)  # [B, C]
    return rng.rand(*index.shape[1:]) < shares[:, :, None, None]


def _errors(logits: Tensor, target: Tensor) -> Tensor:
    """Return the cross-entropy of each pixel in nats, float32 [B, C, S, S].

    logits: [B, C, P, S, S]. target: int64 [B, C, S, S].
    """
    logits = logits.float()
    return logits.logsumexp(2) - logits.gather(2, target[:, :, None])[:, :, 0]


def _draw_colours(logits: Tensor, chance: Tensor, temperature: Tensor, heat: Tensor) -> tuple[Tensor, Tensor]:
    """Draw the pixels' colours at random; return palette indices, int64 [N, C, S, S], and certainties, float32.

    logits: float32 [N, C, P, S, S]. chance: uniform random numbers [N, 2, C, S, S]. temperature: float32 [N, 1, 1, 1],
    randomness of the colours; 0 takes the most likely colour. heat: float32 [N, 1, 1, 1], randomness of the certainty's
    order.
    """
    odds = (logits / temperature.clamp(min=1e-3)[:, :, None]).softmax(2)
    index = (odds.cumsum(2) < chance[:, 0][:, :, None]).sum(2).clamp(max=logits.shape[2] - 1)
    index = torch.where(temperature > 0, index, logits.argmax(2))
    certainty = logits.log_softmax(2).gather(2, index[:, :, None])[:, :, 0]
    gumbel = -(-chance[:, 1].clamp(1e-6, 1 - 1e-6).log()).log()
    return index, certainty + heat * gumbel
