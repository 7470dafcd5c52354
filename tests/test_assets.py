"""The demo sprites are what their script draws, and pixel art by every rule that can be counted."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.core import places
from studio.data.importing import ImportOptions, SpritesImported, import_sprites


@pytest.fixture(scope="module")
def demo() -> SpritesImported:
    *_, found = import_sprites([places.demo_sprites()], ImportOptions())
    assert isinstance(found, SpritesImported)
    return found


def test_the_demo_set_opens_like_any_folder(demo: SpritesImported) -> None:
    assert demo.proposed_size == 24 and demo.sprites.size == 24
    assert len(demo.sprites.class_names) >= 8 and demo.sprites.class_counts().min() >= 200
    assert not demo.quarantine


def test_the_demo_set_is_pixel_art(demo: SpritesImported) -> None:
    rgba = demo.sprites.rgba
    alpha = rgba[..., 3]
    assert set(np.unique(alpha)) == {0, 255}
    assert not rgba[alpha == 0].any()
    colours = np.unique(rgba[alpha == 255], axis=0)
    assert len(colours) <= 64
    per_sprite = [len(np.unique(sprite[sprite[..., 3] == 255], axis=0)) for sprite in rgba]
    assert min(per_sprite) >= 4 and max(per_sprite) <= 16


@pytest.mark.slow
def test_the_script_draws_what_is_bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = places.assets() / "demo"
    monkeypatch.syspath_prepend(folder)
    script = runpy.run_path(str(folder / "make_demo_sprites.py"))
    script["main"].__globals__["OUT"] = tmp_path
    script["main"]()
    bundled = sorted(path.name for path in places.demo_sprites().iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == bundled
    for name in bundled:
        ours, drawn = places.demo_sprites() / name, tmp_path / name
        if name.endswith(".json"):
            assert json.loads(ours.read_text()) == json.loads(drawn.read_text())
        else:  # pixels, not bytes: compression may differ between versions of zlib
            assert np.array_equal(np.asarray(Image.open(ours)), np.asarray(Image.open(drawn)))
    assert "demo_art" in sys.modules
