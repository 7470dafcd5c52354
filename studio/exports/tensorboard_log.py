"""Write event files for TensorBoard with scalars, images, texts and hyperparameters. Needs the package tensorboard.

Each run has a folder with an event file; TensorBoard overlays the curves of all runs below its log folder.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from studio.core.arrays import Rgba
from studio.core.config import Value
from studio.core.errors import ExportError

_VERSION = "brain.Event:2"
_REPORT_EVERY = 2000  # values


def check_installed() -> None:
    """Raise ExportError if the package tensorboard is not installed."""
    if find_spec("tensorboard") is None:
        raise ExportError("The TensorBoard export needs the package tensorboard.", "Run: pip install tensorboard")


class TensorBoardLog:
    """An event file, written sequentially. Times are seconds since 1970, UTC. Raises OSError."""

    def __init__(self, folder: Path, begun_s: float) -> None:
        """Create the file in `folder`, with a name that TensorBoard recognises."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event, self._summary = Event, Summary
        self._records = RecordWriter((folder / f"events.out.tfevents.{int(begun_s):010d}.studio").open("wb"))
        self._write(wall_time=begun_s, file_version=_VERSION)

    def close(self) -> None:
        self._records.close()

    def add_curve(
        self, tag: str, steps: NDArray[np.int64], values: NDArray[np.float64], times_s: NDArray[np.float64]
    ) -> Iterator[int]:
        """Add a scalar per step; yield the number of values written since the last yield."""
        for first in range(0, len(steps), _REPORT_EVERY):
            part = slice(first, first + _REPORT_EVERY)
            rows = zip(steps[part].tolist(), values[part].tolist(), times_s[part].tolist(), strict=True)
            for step, value, time_s in rows:
                self._add(time_s, step, tag=tag, simple_value=value)
            yield len(steps[part])

    def add_picture(self, tag: str, step: int, pixels: Rgba, time_s: float) -> None:
        """Add an image, uint8 [H, W, 4]."""
        height, width, channels = pixels.shape
        data = io.BytesIO()
        Image.fromarray(pixels).save(data, "PNG")
        size = {"height": height, "width": width, "colorspace": channels}
        self._add(time_s, step, tag=tag, image=self._summary.Image(**size, encoded_image_string=data.getvalue()))

    def add_text(self, tag: str, markdown: str, time_s: float) -> None:
        """Add a Markdown text at step 0."""
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
        from tensorboard.plugins.text import metadata

        shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
        tensor = TensorProto(dtype="DT_STRING", string_val=[markdown.encode("utf-8", "replace")], tensor_shape=shape)
        about = metadata.create_summary_metadata(display_name="", description="")
        self._add(time_s, tag=f"{tag}/text_summary", metadata=about, tensor=tensor)

    def add_settings(self, settings: Mapping[str, Value], name: str, time_s: float) -> None:
        """Add hyperparameters for TensorBoard's HParams page. name: unique name of the run."""
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb

        self._write(wall_time=time_s, summary=hparams_pb(dict(settings), trial_id=name, start_time_secs=time_s))

    def _add(self, time_s: float, step: int = 0, **value: Any) -> None:
        self._write(step=step, wall_time=time_s, summary=self._summary(value=[self._summary.Value(**value)]))

    def _write(self, **fields: Any) -> None:
        self._records.write(self._event(**fields).SerializeToString())
