"""The training of the bundled starter: drawings and their styles, recolourings, and networks that share weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import building
import collecting
import numpy as np
import pretraining
import pytest
import torch
from collecting import LAYERS, composed_figures, drawn_collection, kinds_of
from demo_art.canvas import Canvas
from demo_art.characters import cast
from demo_art.palette import COLOURS, TONES, Ramp
from demo_art.sized import KINDS
from demo_art.styles import SHADES, Style, random_style
from PIL import Image
from pretraining import PALETTE, Source, build_networks, pretrain, recoloured
from recolouring import NATURAL, NATURAL_SHARE, Recolouring, random_recolouring, recolour
from torch import Tensor

from studio.core.errors import BadInputError
from studio.data.sprites import Sprites
from studio.engine.training.parents import StarterInfo, parse_starter
from studio.recipes.base import Spec
from studio.recipes.generator import Generator
from tests.conftest import make_sprites

GENERATOR = Generator()
CONFIG = replace(GENERATOR.small, colours=256, levels="3", steps=2, threads=1, seed=3, flip=True)
TURN = Recolouring(turn=2.0, direction=-1.0, bend=0.5, phase=1.0, chroma=1.4)


def collections() -> list[Sprites]:
    """Return a collection of 16 pixels and a collection of 32 pixels."""
    small = make_sprites()
    return [
        replace(small, rgba=small.rgba.repeat(size // small.size, 1).repeat(size // small.size, 2), title=f"{size}")
        for size in (16, 32)
    ]


def colours(count: int = 200) -> Tensor:
    """Return random premultiplied colours, float32 [count, 4] in [-1, 1], some transparent."""
    rgba = torch.rand(count, 4, generator=torch.Generator().manual_seed(0))
    rgba[: count // 2, 3] = 1
    return torch.cat([rgba[:, :3] * rgba[:, 3:], rgba[:, 3:]], 1) * 2 - 1


def luma(colour: Tensor) -> Tensor:
    return (colour[..., :3] + 1) @ torch.tensor([0.299, 0.587, 0.114]) / 2


def test_recolouring_keeps_alpha_and_brightness() -> None:
    before = colours()
    after = recolour(before, TURN)
    assert torch.equal(after[:, 3], before[:, 3])
    assert torch.allclose(luma(after), luma(before), atol=1e-4)
    assert (after[:, :3] >= -1).all() and (after[:, :3] <= after[:, 3:] + 1e-6).all()
    assert (after - before).abs().amax(1).median() > 0.1


def test_recolouring_keeps_greys_and_unused_entries_of_a_palette() -> None:
    grey = torch.linspace(-1, 1, 11)[:, None].expand(11, 3)
    palette = torch.cat([torch.cat([grey, torch.ones(11, 1)], 1), torch.tensor([[0.0, 0.0, 0.0, -2.0]])])
    after = recolour(palette, TURN)
    assert torch.allclose(after[:11], palette[:11], atol=1e-5)
    assert after[11, 3] == -2


def test_pixels_and_palette_get_equal_colours() -> None:
    palette = colours(32)
    index = torch.randint(0, 32, (2, 8, 8), generator=torch.Generator().manual_seed(1))
    assert torch.equal(recolour(palette[index], TURN), recolour(palette, TURN)[index])


def test_a_quarter_of_the_recolourings_is_natural() -> None:
    rng = np.random.default_rng(0)
    drawn = [random_recolouring(rng) for _ in range(1000)]
    assert abs(np.mean([how == NATURAL for how in drawn]) - NATURAL_SHARE) < 0.05
    assert recolour(colours(), NATURAL).equal(colours())


def test_recoloured_batch_lies_in_the_recoloured_palette() -> None:
    sprites = collections()[0]
    source = Source(sprites, 0, GENERATOR, CONFIG)
    batch = source.next_batch(torch.Generator().manual_seed(0), 0.0)
    seeds = (seed for seed in range(100) if random_recolouring(np.random.default_rng(seed)) != NATURAL)
    other, palette = recoloured(batch, source.palette, np.random.default_rng(next(seeds)))
    used = palette[source.palette[:, 3] > -2]
    pixels = other.x.permute(0, 2, 3, 1).reshape(-1, 4)
    assert torch.cdist(pixels, used).amin(1).max() < 1e-2
    assert not torch.allclose(other.x, batch.x, atol=0.1)
    same, own = recoloured(batch, source.palette, np.random.default_rng(0), is_on=False)
    assert same.x.equal(batch.x) and own.equal(source.palette)


def test_batches_of_all_sizes_have_equally_many_pixels() -> None:
    for sprites in collections():
        source = Source(sprites, 5, GENERATOR, CONFIG)
        batch = source.next_batch(torch.Generator(), 0.5)
        assert batch.x.numel() == 4 * pretraining.PART_PIXELS and batch.x.shape[-1] == sprites.size
        assert batch.y.min() >= 5 and batch.progress == 0.5


def test_networks_of_all_sizes_share_their_weights() -> None:
    networks = build_networks(collections(), GENERATOR, CONFIG)
    assert list(networks) == [16, 32]
    small, large = networks.values()
    with torch.no_grad():
        small.enter.weight.fill_(0.5)
        small.get_buffer(PALETTE).fill_(0.25)
    assert (large.enter.weight == 0.5).all() and (large.get_buffer(PALETTE) == 0.25).all()
    for size, network in networks.items():
        x = torch.zeros(1, 4, size, size)
        assert network(x, torch.zeros(1), torch.zeros(1, dtype=torch.int64)).shape == x.shape


def test_training_is_repeatable_and_its_file_starts_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretraining, "PART_PIXELS", 1024)
    with torch.random.fork_rng():
        weights, again = pretrain(collections(), GENERATOR, CONFIG), pretrain(collections(), GENERATOR, CONFIG)
        plain = pretrain(collections(), GENERATOR, CONFIG, recolours=False)
    assert PALETTE not in weights
    assert all(weights[name].equal(again[name]) for name in weights)
    assert not all(weights[name].equal(plain[name]) for name in weights)
    weights["label.weight"] = weights["label.weight"][-1:]
    settings = GENERATOR.fixed_settings(CONFIG, 32)
    building.save(tmp_path / "it", weights, StarterInfo("generator", settings, 32, 2, "trial", "0"))
    parent = parse_starter((tmp_path / "it").read_bytes(), "CC0-1.0")
    spec = Spec(64, ("sword",))
    network = GENERATOR.build(CONFIG, spec)
    assert parent.copy_weights(network, GENERATOR, spec) == 0
    assert network.enter.weight.allclose(weights["enter.weight"], atol=1e-3)


def test_interrupted_training_continues_with_an_equal_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pretraining, "PART_PIXELS", 1024)
    monkeypatch.setattr(pretraining, "STATE_STEPS", 2)
    config, state, calls = replace(CONFIG, steps=4), tmp_path / "state", list[int]()

    def interrupted(*args: Any, **kwargs: Any) -> Any:
        calls.append(0)
        if len(calls) > 2 * pretraining.PARTS:
            raise KeyboardInterrupt
        return recoloured(*args, **kwargs)

    with torch.random.fork_rng():
        whole = pretrain(collections(), GENERATOR, config)
        with monkeypatch.context() as patch:
            patch.setattr(pretraining, "recoloured", interrupted)
            with pytest.raises(KeyboardInterrupt):
                pretrain(collections(), GENERATOR, config, state=state)
        continued = pretrain(collections(), GENERATOR, config, state=state)
        assert all(whole[name].equal(continued[name]) for name in whole)
        with pytest.raises(BadInputError, match="another training"):
            pretrain(collections(), GENERATOR, replace(config, seed=4), state=state)


@pytest.mark.parametrize("size", [16, 32, 64])
def test_every_kind_draws_at_every_size(size: int) -> None:
    for draw in KINDS.values():
        for seed in range(3):
            canvas = draw(np.random.default_rng(seed), size)
            assert canvas.size == size and canvas.painted.mean() > 0.05
            assert len(np.unique(canvas.tone[canvas.painted])) > 1
            assert np.array_equal(canvas.rgba(), draw(np.random.default_rng(seed), size).rgba())


def test_styles_change_colours_and_outline_only() -> None:
    canvas = KINDS["blobs"](np.random.default_rng(0), 32)
    rng = np.random.default_rng(0)
    plain, own, ink, none = (
        Style(COLOURS).paint(canvas, rng),
        *(Style(COLOURS[::-1], (0, 2, 2, 3, 3), outline).paint(canvas, rng) for outline in ("own", "ink", "none")),
    )
    assert np.array_equal(plain, canvas.rgba())
    alpha = plain[..., 3]
    assert np.array_equal(own[..., 3], alpha) and np.array_equal(ink[..., 3], alpha)
    assert (none[..., 3] <= alpha).all() and 0 < none[..., 3].sum() < alpha.sum()
    assert len(np.unique(own[alpha > 0], axis=0)) < len(np.unique(plain[alpha > 0], axis=0))
    darkest = ink[(canvas.tone == 0) & canvas.painted]
    assert (darkest == darkest[0]).all()


def test_grain_adds_shades_between_the_tones_of_a_ramp() -> None:
    canvas = KINDS["floors"](np.random.default_rng(0), 32)
    plain = Style(COLOURS).paint(canvas, np.random.default_rng(0))
    grainy = Style(COLOURS, grain=0.4).paint(canvas, np.random.default_rng(0))
    assert np.array_equal(grainy[..., 3], plain[..., 3])
    count, more = (len(np.unique(pixels.reshape(-1, 4), axis=0)) for pixels in (plain, grainy))
    assert 2 * count < more <= len(Ramp) * ((TONES - 2) * SHADES + 2)
    assert np.abs(grainy.astype(int) - plain).mean() < 30  # the drawing stays
    outline = (canvas.tone == 0) & canvas.painted
    assert np.array_equal(grainy[outline], plain[outline])


def test_random_styles_have_ramps_from_dark_to_light() -> None:
    styles = [random_style(np.random.default_rng(seed)) for seed in range(30)]
    for style in styles:
        brightness = style.colours @ np.array([0.299, 0.587, 0.114])
        assert style.colours.shape == COLOURS.shape and (np.diff(brightness, axis=1) > -2).all()
    assert len({style.colours.tobytes() for style in styles}) == len(styles)
    assert {style.grain > 0 for style in styles} == {False, True}
    assert {len(np.unique(style.colours[:, 2], axis=0)) < len(Ramp) for style in styles} == {False, True}


def test_characters_in_other_colours_keep_their_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cast, "PEOPLE", {})
    monkeypatch.setattr(cast, "FOLK", {})
    own, other = cast.characters(), cast.characters(COLOURS[::-1])
    assert own.keys() == other.keys()
    assert all(np.array_equal(own[name][..., 3], other[name][..., 3]) for name in own)
    assert any(not np.array_equal(own[name], other[name]) for name in own)


def test_drawn_collection_has_one_style_and_several_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "A_COLLECTION", 12)
    style = replace(random_style(np.random.default_rng(5)), grain=0.0)
    sprites, again = (drawn_collection("art", np.random.default_rng(0), style, 32) for _ in range(2))
    assert sprites.rgba.shape == (12, 32, 32, 4) and sprites.fingerprint == again.fingerprint
    assert 4 <= len(sprites.class_names) <= 8 and (sprites.class_counts() > 0).all()
    used = np.unique(sprites.rgba[sprites.rgba[..., 3] > 0][:, :3], axis=0)
    allowed = {tuple(colour) for colour in style.colours.reshape(-1, 3).tolist()}
    assert {tuple(colour) for colour in used.tolist()} <= allowed


def test_small_demo_kinds_are_placed_on_larger_canvases() -> None:
    assert {"gems", "blobs"} <= kinds_of(16).keys() and "swords" not in kinds_of(16)
    assert "swords" in kinds_of(32) and "swords" not in kinds_of(64)
    canvas = kinds_of(32)["swords"](np.random.default_rng(0))
    assert isinstance(canvas, Canvas) and canvas.size == 24


def test_figures_have_a_body_and_random_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "DOLLS", 100)
    for number, layer in enumerate(LAYERS):
        (tmp_path / layer).mkdir()
        pixels = np.zeros((32, 32, 4), np.uint8)
        pixels[3 * number : 3 * number + 2] = 255
        Image.fromarray(pixels).save(tmp_path / layer / "one.png")
    figures = composed_figures(tmp_path, np.random.default_rng(0))
    has_layer = figures.rgba[:, ::3, 0, 3][:, : len(LAYERS)] > 0
    assert has_layer[:, LAYERS.index("base")].all()
    others = has_layer[:, [number for number, layer in enumerate(LAYERS) if layer != "base"]]
    assert abs(others.mean() - collecting.LAYER_SHARE) < 0.1


def test_collections_are_left_out_by_the_start_of_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()
    monkeypatch.setattr(collecting, "check_files", lambda folder, manifest: None)
    monkeypatch.setattr(collecting, "published_tiles", lambda folder, seed: [])
    monkeypatch.setattr(collecting, "character_frames", lambda folder, title: read.append(title))
    assert len(collecting.collect(tmp_path, ["dcss", "ninja-adventure", "drawn"], 0)) == len(read) == 5
    assert "mini-world" in read and not any(title.startswith("ninja") for title in read)
