"""The history of a run as TensorBoard reads it, by its own reader."""

from __future__ import annotations

import datetime
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from studio.core.errors import ExportError
from studio.core.events import SamplesReady
from studio.engine.runs.analysis.event_log import EventLogSaved, save_event_log
from studio.engine.runs.evaluation import CheckpointEvaluation, save_evaluation
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import RunReader
from studio.engine.runs.samples import SAMPLE_COLUMNS, sample_paths, save_samples
from studio.exports import tensorboard_log
from tests.conftest import make_sprites
from tests.engine.tools import kept_run, train_toy

_ALL = {"scalars": 0, "images": 0, "tensors": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = kept_run(tmp_path_factory, make_sprites(), train_toy, steps=6, log_layer_stats=True)
    list(save_evaluation(path, CheckpointEvaluation(6, "", {"kid_heldout": 0.25}, {}, 20, 80, 64)))
    return path


def _saved(run: Path, folder: Path) -> Path:
    *_, done = save_event_log(run, folder)
    assert isinstance(done, EventLogSaved)
    return done.path


def test_tensorboard_reads_the_very_curves_pixels_and_settings(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorboard_log, "_REPORT_EVERY", 4)  # in parts
    log = EventAccumulator(str(_saved(run, tmp_path)), size_guidance=_ALL).Reload()
    read = RunReader().read(run)
    begun_s = datetime.datetime.fromisoformat(RunDir(run).record().created).timestamp()
    loss = read.history.series["loss"]
    found = log.Scalars("training/loss")
    assert [event.step for event in found] == loss.steps.tolist() == list(range(6))
    assert np.array_equal([event.value for event in found], loss.values.astype(np.float32))
    elapsed = read.history.series["elapsed_s"].values[-1]
    assert found[0].wall_time == begun_s and log.Scalars("held-out/loss")[-1].wall_time == begun_s + elapsed
    for name in ("training/lr", "training/sprites_per_s", "held-out/loss"):
        kind, _, key = name.partition("/")
        curve = (read.history.series if kind == "training" else read.history.validation)[key]
        assert np.allclose([event.value for event in log.Scalars(name)], curve.values, rtol=1e-6)
    assert [(event.step, event.value) for event in log.Scalars("evaluation/kid_heldout")] == [(6, 0.25)]
    assert any(tag.startswith("layers-update/") for tag in log.Tags()["scalars"])
    pictures = log.Images("samples")
    assert [picture.step for picture in pictures] == [sample.step for sample in read.samples]
    for picture, step in zip(pictures, sample_paths(RunDir(run)).values(), strict=True):
        with Image.open(step) as kept, Image.open(io.BytesIO(picture.encoded_image_string)) as told:
            assert np.array_equal(np.asarray(told), np.asarray(kept.convert("RGBA")))
    (text,) = log.Tensors("settings/text_summary")
    assert b"| Batch size | 4 sprites |" in text.tensor_proto.string_val[0]
    assert log.summary_metadata["_hparams_/session_start_info"].plugin_data.plugin_name == "hparams"


def test_log_never_overwrites_another(run: Path, tmp_path: Path) -> None:
    assert _saved(run, tmp_path) == tmp_path / run.name
    assert _saved(run, tmp_path) == tmp_path / f"{run.name}-2"
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="Can't write"):
        list(save_event_log(run, tmp_path / "file"))


def test_cancelled_log_leaves_no_files(run: Path, tmp_path: Path) -> None:
    saving = save_event_log(run, tmp_path)
    next(saving)
    saving.close()
    assert not list(tmp_path.iterdir())


def test_missing_tensorboard_is_an_error_with_a_hint(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorboard_log, "find_spec", lambda name: None)
    with pytest.raises(ExportError, match="needs the package") as raised:
        list(save_event_log(run, tmp_path))
    assert raised.value.hint == "Run: pip install tensorboard"


def test_samples_of_fewer_than_a_line_are_as_wide_as_they_are(run: Path, tmp_path: Path) -> None:
    assert SAMPLE_COLUMNS > 2
    save_samples(RunDir(run), SamplesReady(7, np.full((2, 8, 8, 4), 9, np.uint8), ("a", "b")))
    log = EventAccumulator(str(_saved(run, tmp_path)), size_guidance=_ALL).Reload()
    assert log.Images("samples")[-1].width == 16
