"""Sprites drawn in C beside the studio's own."""

from __future__ import annotations

import dataclasses
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from studio.data.colour.pixel_art import to_pixel_art
from studio.engine import catalog
from studio.engine.devices.types import STARTER
from studio.engine.models.exporting import exportable_copy
from studio.engine.models.model import TrainedModel
from studio.engine.sampling import generate
from studio.engine.sampling.settings import GenerateSettings
from studio.engine.steps.batches import to_rgba
from studio.engine.training.parents import load_parent
from studio.recipes.base import Spec
from studio.recipes.flow import CONSTANTS, timesteps
from tests.exports.c.tools import SIZE, STYLE, Drawing, drawing_model, needs_compiler, write

LABELS = (0, 1, 2, -1)
RNG = np.random.default_rng(0)

pytestmark = [needs_compiler, pytest.mark.usefixtures("made_once")]


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    return drawing_model()


@pytest.fixture(scope="module")
def written(model: TrainedModel, tmp_path_factory: pytest.TempPathFactory, made_once: None) -> Path:
    return write(exportable_copy(model), tmp_path_factory.mktemp("drawing") / "model.c")


@pytest.fixture(scope="module")
def drawing(written: Path) -> Drawing:
    return Drawing.of(written, SIZE)


def drawn_by(model: TrainedModel, count: int, steps: int = 10, **settings: object) -> NDArray[np.uint8]:
    """The studio's own sprites, of no class at all."""
    how = dataclasses.replace(GenerateSettings(count=count, steps=steps), **settings)  # type: ignore[arg-type]
    job = generate.draw(model, np.full(count, -1), how)
    while True:
        try:
            next(job)
        except StopIteration as done:
            return np.asarray(done.value)


def same_pixels(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    return float((one == other).all(-1).mean())


@pytest.mark.parametrize(("guidance", "steps"), [(1.0, 1), (1.0, 5), (1.5, 10), (2.0, 3), (0.0, 2), (1.5, 17)])
def test_c_sprites_equal_the_studios(model: TrainedModel, drawing: Drawing, guidance: float, steps: int) -> None:
    with torch.no_grad():
        *_, expected = model.recipe.draw(model.network, torch.tensor(LABELS), guidance, steps, seed=5)
    for place, label in enumerate(LABELS):
        found = drawing.draw_from(label, drawing.noise(5 + 1_000_003 * place), guidance, steps)
        assert np.abs(found - expected[place].numpy()).max() < 2 / 255


def test_the_steps_are_the_studios(drawing: Drawing) -> None:
    """The times of C, by its own formula, beside the studio's."""
    last, before = CONSTANTS["last_from"], CONSTANTS["guided_to"]
    for steps in range(2, 60):
        times = [0.0, *(before * step / (step + 4 * (steps - 2 - step)) for step in range(1, steps - 1)), last, 1.0]
        assert times == timesteps(steps)
    assert timesteps(1) == [0.0, 1.0]


def test_a_seed_gives_the_studios_own_sprites(model: TrainedModel, drawing: Drawing) -> None:
    expected = drawn_by(model, 12, seed=3)
    found = np.stack([drawing.draw(-1, 3 + 1_000_003 * place) for place in range(12)])
    assert same_pixels(found, expected) >= 0.995


@pytest.mark.slow
def test_a_trained_model_draws_the_studios_own_sprites(tmp_path: Path) -> None:
    recipe = catalog.recipe("generator")
    starter = load_parent(STARTER, recipe)
    config, weights, names = recipe.Config().replace(**starter.settings), {**starter.weights}, ("a", "b", "c")
    rows = weights["label.weight"]
    weights["label.weight"] = rows[-1:].repeat(len(names) + 1, 1)
    network = recipe.build(config, Spec(32, names))
    network.load_state_dict(weights)
    network.eval().requires_grad_(False)
    device = torch.device("cpu")
    model = TrainedModel(recipe, config, Spec(32, names), network, device, "fp32", 5500, "starter", STYLE)
    drawing = Drawing.of(write(exportable_copy(model), tmp_path / "model.c"), 32)
    expected, found = (
        drawn_by(model, 6, steps=6),
        np.stack([drawing.draw(-1, 1_000_003 * i, steps=6) for i in range(6)]),
    )
    assert len(np.unique(expected.reshape(-1, 4), axis=0)) > 10  # there is something to be seen
    assert same_pixels(found, expected) >= 0.995


def canvases() -> list[NDArray[np.float32]]:
    """Sprites as a network draws them, float32 [4, S, S]: of every kind that snapping has to deal with."""
    noise = RNG.normal(0, 0.8, (12, 4, SIZE, SIZE))
    ramp = np.broadcast_to(np.linspace(-1, 1, SIZE), (4, SIZE, SIZE))
    few = RNG.choice([-0.9, -0.2, 0.4, 1.0], (6, 4, SIZE, SIZE))
    opaque = np.concatenate([RNG.normal(0, 0.3, (6, 3, SIZE, SIZE)), np.ones((6, 1, SIZE, SIZE))], 1)
    flat = np.full((4, SIZE, SIZE), 0.3)
    pixel = np.full((4, SIZE, SIZE), -1.0)
    pixel[:, 3, 4] = 0.9
    empty, beyond = np.full((4, SIZE, SIZE), -1.0), 3 * noise[0]
    soft = np.concatenate([noise[1, :3], np.tile(ramp[:1], (1, 1, 1))])
    everything = [*noise, *few, *opaque, ramp, flat, pixel, empty, beyond, soft]
    return [np.ascontiguousarray(one, np.float32) for one in everything]


def test_snapping_is_the_studios(drawing: Drawing) -> None:
    sprites = canvases()
    drawn = to_rgba(torch.from_numpy(np.stack(sprites))).numpy()
    for label in LABELS:
        expected = to_pixel_art(drawn, np.full(len(drawn), label), STYLE)
        found = np.stack([drawing.finish(label, sprite) for sprite in sprites])
        assert same_pixels(found, expected) >= 0.999


@pytest.mark.slow
def test_without_a_palette_nothing_is_snapped(model: TrainedModel, tmp_path: Path) -> None:
    plain = dataclasses.replace(STYLE, palette=np.zeros((0, 3), np.uint8))
    drawing = Drawing.of(write(exportable_copy(dataclasses.replace(model, style=plain)), tmp_path / "model.c"), SIZE)
    for sprite in canvases():
        drawn = to_rgba(torch.from_numpy(sprite)[None])[0].numpy()
        assert np.abs(drawing.finish(0, sprite).astype(int) - drawn).max() <= 1


@pytest.mark.slow
def test_int8_is_near_in_a_single_look(model: TrainedModel, drawing: Drawing, tmp_path: Path) -> None:
    rounded = Drawing.of(write(exportable_copy(model), tmp_path / "model.c", "int8"), SIZE)
    exact, found = (one.draw_from(0, one.noise(1), 1, 1) for one in (drawing, rounded))
    difference = np.abs(found - exact).max() / np.abs(exact).max()
    assert 1e-4 < difference < 0.05  # it is rounded, by steps of a 127th


def test_unknown_classes_and_steps_are_errors(drawing: Drawing) -> None:
    rgba = np.zeros((SIZE, SIZE, 4), np.uint8)
    for label, steps in ((-2, 10), (3, 10), (0, 0), (0, -1)):
        assert drawing.draw_with(drawing.context, label, 0, 1.5, steps, rgba) == -1
    assert not rgba.any()


def test_other_weights_are_refused(written: Path, drawing: Drawing) -> None:
    whole = written.with_suffix(".bin").read_bytes()
    assert drawing.another(whole) is not None
    for place in (0, 7, 8, 11, 12, len(whole) // 2, len(whole) - 1):
        assert drawing.another(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]) is None
        assert drawing.another(whole[:place]) is None
    assert drawing.another(whole + b"\0") is None


def test_threads_with_a_context_each_do_not_disturb_each_other(written: Path, drawing: Drawing) -> None:
    weights = written.with_suffix(".bin").read_bytes()
    expected = {seed: drawing.draw(seed % 3, seed, steps=3) for seed in range(24)}

    def draw(seeds: range) -> bool:
        context = drawing.another(weights)
        assert context is not None
        rgba = np.zeros((SIZE, SIZE, 4), np.uint8)
        found = [drawing.draw_with(context, seed % 3, seed, 1.5, 3, rgba) or rgba.copy() for seed in seeds]
        drawing.library.model_close(context)
        return all(np.array_equal(one, expected[seed]) for one, seed in zip(found, seeds, strict=True))

    with ThreadPoolExecutor(4) as pool:  # ctypes lets go of the interpreter's lock while C runs
        assert all(pool.map(draw, [range(start, 24, 4) for start in range(4)]))


def test_only_open_allocates_memory(written: Path) -> None:
    before, _, opening = written.read_text().partition("/* Creating contexts from a weights file")
    code = re.sub(r"/\*.*?\*/", "", before, flags=re.DOTALL)  # comments name classifier-free guidance
    assert opening and not re.search(r"\b(malloc|calloc|realloc|free|qsort|fopen)\b", code)


@pytest.mark.slow
def test_the_object_file_has_no_writable_data(written: Path) -> None:
    """What the compiled file has that can be written: nothing."""
    subprocess.run(["cc", "-std=c99", "-O1", "-c", written.name, "-o", "model.o"], cwd=written.parent, check=True)
    sizes = subprocess.run(["size", "-A", "model.o"], cwd=written.parent, capture_output=True, text=True, check=True)
    lines = [line.split() for line in sizes.stdout.splitlines() if line.startswith(".")]
    found = {words[0]: int(words[1]) for words in lines}
    assert found[".text"] > 0 and found.get(".data", 0) == found.get(".bss", 0) == 0
