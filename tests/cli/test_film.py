"""`studio film`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studio.cli.messages import FAILED, WRONG_USAGE
from studio.core.events import SamplesReady
from studio.engine.runs.folder import RunDir
from studio.engine.runs.samples import save_samples
from tests.cli.tools import Studio
from tests.conftest import make_sprites
from tests.exports.sprites.making import played


@pytest.fixture
def run(generator_run: Path, tmp_path: Path) -> Path:
    """A run with three samples, of which the last two are the same and the first is of fewer sprites."""
    path = shutil.copytree(generator_run, tmp_path / "my run")
    for old in (path / "samples").iterdir():
        old.unlink()
    sprites = make_sprites(per_class=6).rgba
    for step, shown in ((0, sprites[::-1][:9]), (5, sprites), (70, sprites)):
        save_samples(RunDir(path), SamplesReady(step, shown, ("disc",) * len(shown)))
    return path


def test_every_sample_is_a_frame(run: Path, tmp_path: Path, studio: Studio) -> None:
    said = studio("film", run, "--out", tmp_path / "learning.gif")
    assert f"3 samples of my run (0.8 s): {tmp_path / 'learning.gif'}" in said.out
    frames = played((tmp_path / "learning.gif").read_bytes())
    assert [duration_ms for _, duration_ms in frames] == [250, 250, 2250]
    for (shown, _), path in zip(frames, sorted((run / "samples").iterdir()), strict=True):
        with Image.open(path) as picture:
            kept = np.asarray(picture)
        kept = kept.repeat(8, 0).repeat(8, 1)  # 64 pixels across
        assert shown.shape == (128, 512, 4) and np.array_equal(shown, kept)


def test_size_and_time_are_as_asked_and_nothing_is_overwritten(run: Path, tmp_path: Path, studio: Studio) -> None:
    words = ["film", run, "--scale", "2", "--seconds", "3", "--json", "--out", tmp_path / "a.apng"]
    for name in ("a.apng", "a-2.apng"):
        assert studio(*words).objects() == [{"type": "FilesSaved", "paths": [str(tmp_path / name)]}]
        frames = played((tmp_path / name).read_bytes())
        assert [duration_ms for _, duration_ms in frames] == [1000, 1000, 3000]
        assert {shown.shape for shown, _ in frames} == {(32, 128, 4)}


def test_a_timelapse_gets_a_free_name_and_prints_losses(
    run: Path, tmp_path: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    soft = make_sprites(per_class=1).rgba // 2
    save_samples(RunDir(run), SamplesReady(90, soft))
    monkeypatch.chdir(tmp_path)
    assert "no semi-transparency" in "".join(studio("film", "my run"))
    assert (tmp_path / "my-run.gif").is_file()
    studio("film", "my run", "--out", run)
    assert (run / "my-run.gif").is_file()


def test_film_errors(run: Path, tmp_path: Path, studio: Studio) -> None:
    bare = shutil.copytree(run, tmp_path / "bare")
    shutil.rmtree(bare / "samples")
    (tmp_path / "file").write_text("")
    for words, code, said in (
        (["nowhere"], WRONG_USAGE, "no run 'nowhere'"),
        ([str(bare)], FAILED, "bare has no live samples."),
        ([str(run), "--out", str(tmp_path / "b.png")], WRONG_USAGE, "name that ends in .aseprite, .gif or .apng."),
        ([str(run), "--out", str(tmp_path / "b")], WRONG_USAGE, "can't be saved as 'b'"),
        ([str(run), "--out", str(tmp_path / "file" / "b.gif")], FAILED, "Can't write"),
        ([str(run), "--scale", "0"], WRONG_USAGE, "--scale must be from 1 to"),
        ([str(run), "--scale", "5000"], WRONG_USAGE, "not 5000"),
        ([str(run), "--seconds", "0.01"], WRONG_USAGE, "--seconds must be from 0.06 to 30, not 0.01."),
        ([str(run), "--seconds", "nan"], WRONG_USAGE, "not nan"),
    ):
        assert said in studio("film", *words, code=code).err
    assert not list(tmp_path.glob("b.*"))


def test_film_leaves_torch_and_qt_alone(run: Path, tmp_path: Path) -> None:
    words = ["film", str(run), "--out", str(tmp_path / "film.gif")]
    code = (
        f"import sys\nfrom studio.cli import main\nassert main({words!r}) == 0\n"
        "loaded = {'torch', 'PySide6', 'pyqtgraph', 'matplotlib'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
