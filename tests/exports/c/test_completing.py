"""Sets completed in C beside the studio's own: with a network written in C and in Python, and with a real one."""

from __future__ import annotations

import ctypes
import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from studio.core import paths
from studio.core.events import SetsDrawn
from studio.engine import catalog
from studio.engine.models.exporting import exportable_copy
from studio.engine.sampling.complete import complete
from studio.engine.sampling.settings import CompleteSettings, GivenSets
from studio.exports.base import PROBE
from studio.exports.c import source
from studio.exports.c.completing import ROUNDS, SEED_STRIDE, SetTables
from studio.recipes.flow import normal_rows
from studio.recipes.set_drawing import draw_missing
from studio.recipes.sets import Sets
from tests.exports.c.tools import library, needs_compiler, pointer, write
from tests.exports.tools import small_model

CELLS, SIZE, ENTRIES = 4, 6, 8
COLOURS = torch.tensor([[0, 0, 0, 0], [200, 30, 10, 255], [10, 220, 40, 255], [30, 30, 240, 255], [9, 9, 9, 128]])

pytestmark = [needs_compiler, pytest.mark.usefixtures("made_once")]

# Odds that follow from numbers of places, and from how many known pixels have the colour.
NETWORK = """
static int set_network(const float *w, float *m, int entries, const float *index, const float *palette,
                       const float *known, float *out)
{
    (void)w, (void)m, (void)entries;
    for (int cell = 0; cell < CELLS; cell++) {
        for (int i = 0; i < AREA; i++) {
            float sum = 0;
            for (int e = 0; e < ENTRIES; e++) {
                int count = 0;
                for (int j = 0; j < SET_PIXELS; j++) count += known[j] != 0 && index[j] == (float)e;
                float *odds = out + (cell * ENTRIES + e) * AREA + i;
                *odds = palette[4 * e + 3] < -1 ? 0 : (float)((cell * 7919 + e * 3571 + i * 9973) % 4099 + 20 * count);
                sum += *odds;
            }
            for (int e = 0; e < ENTRIES; e++) out[(cell * ENTRIES + e) * AREA + i] /= sum;
        }
    }
    return ENTRIES;
}
"""
CALLED = """
int completed(const uint8_t *cells, const uint8_t *given, int64_t seed, float variety, uint8_t *drawn);

int completed(const uint8_t *cells, const uint8_t *given, int64_t seed, float variety, uint8_t *drawn)
{
    static model_context m;
    prepare(&m);
    return model_complete(&m, cells, given, seed, variety, drawn);
}
"""


class Network:
    """The network of NETWORK in torch. The third and the fourth cell mirror each other, the first mirrors itself."""

    partners = torch.tensor([0, -1, 3, 2])

    def __init__(self, mirrored: float) -> None:
        self.mirrored = torch.full((CELLS,), mirrored)
        self.palettes = torch.full((3, ENTRIES, 4), -2.0)
        self.palettes[:, 0] = -1
        for number, palette in enumerate(self.palettes):
            palette[1 : 3 + number] = torch.linspace(-0.9, 0.9, 2 + number)[:, None]
            palette[1 : 3 + number, 3] = 1

    def __call__(self, index: Tensor, palette: Tensor, known: Tensor) -> Tensor:
        cell, entry, place = torch.meshgrid(*map(torch.arange, (CELLS, palette.shape[1], SIZE**2)), indexing="ij")
        has = (index[:, None] == torch.arange(palette.shape[1])[:, None, None, None]) * known[:, None]
        counts = has.flatten(2).sum(2)[:, None, :, None]  # [N, 1, P, 1]
        odds = (cell * 7919 + entry * 3571 + place * 9973) % 4099 + 20 * counts
        odds = torch.where(palette[:, None, :, 3:] < -1.5, 0, odds).view(len(index), *cell.shape[:2], SIZE, SIZE)
        return odds.log()


def bytes_of(array: NDArray[np.bool_]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(array, np.uint8)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[float, ctypes.CDLL]:
    """The code for completing sets with NETWORK, by the share of mirrored training sets."""
    libraries = {}
    for share in (0.9499, 0.95):
        network = Network(share)
        palettes = ((network.palettes.clamp(min=-1) + 1) * 127.5).round().byte()
        palettes[..., :3] *= palettes[..., 3:] > 0
        tables = SetTables((ENTRIES,), palettes.numpy(), network.partners.int().numpy(), network.mirrored.numpy())
        sizes = {"MODEL_SIZE": SIZE, "AREA": SIZE**2, "WEIGHTS": 1, "MEMORY": 1, "CELLS": CELLS}
        sizes |= {"ENTRIES": ENTRIES, "MOST_ENTRIES": ENTRIES}
        text, marker = source.read("sets.c", "model"), "/* Working memory"
        before, _, after = text.partition(marker)
        parts = [
            source.includes("model.h"), source.defines(sizes), source.set_tables(tables),
            source.read("noise.c", "model"), before, NETWORK, marker + after, source.read("completing.c", "model"),
            CALLED,
        ]  # fmt: skip
        path = tmp_path_factory.mktemp("completing") / "model.c"
        path.write_text("\n".join(parts))
        api = source.read("completing.h", "model").rpartition("\n\n")[2]
        path.with_name("model.h").write_text(
            f"#include <stdint.h>\ntypedef struct model_context model_context;\n{api}\n"
        )
        libraries[share] = library(path, ("-O1",))
    return libraries


def drawn_in_c(library: ctypes.CDLL, cells: Tensor, given: Tensor, seed: int, variety: float) -> NDArray[np.uint8]:
    inputs, has, drawn = cells.numpy().copy(), bytes_of(given.numpy()), np.full(tuple(cells.shape), 77, np.uint8)
    how = ctypes.c_int64(seed), ctypes.c_float(variety)
    assert library.completed(pointer(inputs), pointer(has), *how, pointer(drawn)) == 0
    in_place = library.completed(pointer(inputs), pointer(has), *how, pointer(inputs))
    assert in_place == 0 and (inputs == drawn).all()
    return drawn


@pytest.mark.parametrize("share", [0.9499, 0.95])
@pytest.mark.parametrize("variety", [0.0, 0.5, 1.0])
def test_c_draws_what_exports_draw(built: dict[float, ctypes.CDLL], share: float, variety: float) -> None:
    network, rng = Network(share), torch.Generator().manual_seed(1)
    cells = COLOURS[torch.randint(0, 5, (CELLS, SIZE, SIZE), generator=rng)].byte()
    for number, given in enumerate(torch.tensor([[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 1, 0], [0] * 4, [1] * 4]) > 0):
        chances = torch.special.ndtr(normal_rows(1, (ROUNDS, 2, CELLS, SIZE, SIZE), seed=5, first=number))
        expected = draw_missing(Sets.complete, network, cells[None], given[None], chances, variety)[0].numpy()
        found = drawn_in_c(built[share], cells, given, 5 + SEED_STRIDE * number, variety)
        assert (found == expected).all(-1).mean() >= 0.99
        assert (found[given] == cells[given].numpy()).all()
        if variety and given.any() and not given[2]:  # a mirror image where those of nearly all training sets are
            assert (found[2] == found[3, :, ::-1]).all() == (share == 0.95)


def test_more_colours_than_a_palette_has_are_refused(built: dict[float, ctypes.CDLL]) -> None:
    cells = np.zeros((CELLS, SIZE, SIZE, 4), np.uint8)
    given, drawn = np.array([1, 0, 0, 0], np.uint8), np.zeros_like(cells)
    for count, refused in ((ENTRIES - 1, 0), (ENTRIES, -1)):
        cells[0].reshape(-1, 4)[:count] = [[number, 0, 0, 255] for number in range(count)]
        how = ctypes.c_int64(0), ctypes.c_float(0.5)
        assert built[0.95].completed(pointer(cells), pointer(given), *how, pointer(drawn)) == refused
        cells[1:] = np.random.default_rng(0).integers(0, 256, cells[1:].shape)  # missing cells are ignored


@pytest.mark.slow
@pytest.mark.parametrize("colours", [16, 64])
def test_a_network_draws_demo_characters_as_the_studio_does(colours: int, tmp_path: Path) -> None:
    recipe = catalog.recipe("sets")
    small = dataclasses.replace(recipe.small, colours=colours)
    model = small_model(recipe, 16, small)
    found = library(write(exportable_copy(model), tmp_path / "model.c"))
    found.model_open.restype = ctypes.c_void_p
    context = ctypes.c_void_p(found.model_open(str(tmp_path / "model.bin").encode()))
    given, count = np.array([True, False, False, False]), len(model.spec.cells)
    for path in sorted(paths.demo_characters().glob("*.png"))[::25]:
        sheet = np.array(Image.open(path).convert("RGBA"))[:16, : 16 * count]
        cells = np.ascontiguousarray(sheet.reshape(16, count, 16, 4).swapaxes(0, 1))
        for number in (0, 1):  # the first candidate has no variety
            sets = GivenSets(("a",), cells[None], given[None])
            *_, done = complete(model, CompleteSettings(variety=0.5, seed=3), sets, first=number)
            assert isinstance(done, SetsDrawn)
            how = ctypes.c_int64(3 + SEED_STRIDE * number), ctypes.c_float(0.5 * number)
            drawn = np.zeros_like(cells)
            inputs = pointer(cells), pointer(bytes_of(given)), *how, pointer(drawn)
            assert found.model_complete(context, *inputs) == 0
            assert (drawn == done.cells[0]).all(-1).mean() >= 0.99 and (drawn[0] == cells[0]).all()


def test_the_rounds_are_those_of_the_studio() -> None:
    assert CompleteSettings().rounds == ROUNDS and f"ROUNDS = {ROUNDS} " in source.read("sets.c", "model")
    assert PROBE.variety > 0  # the comparison of an export draws all rounds
