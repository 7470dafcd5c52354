"""The events that jobs yield while they run: frozen dataclasses, forwarded unchanged.

Arrays in an event are CPU copies that nobody changes afterwards. Sprites are uint8 [N, H, W, 4], RGBA, straight alpha.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from studio.core import former_names
from studio.core.arrays import Rgba
from studio.core.metrics import Quality

if not TYPE_CHECKING:  # a checker would accept any name
    __getattr__ = former_names.attributes_of(__name__)


@dataclass(frozen=True)
class Event:
    """Base of all events."""

    json_type: ClassVar[str] = ""  # the 'type' in the command line's --json; empty: the name of the class


# What every slow piece of work is: advance it to let it work, close it to cancel it.
Events = Generator[Event, None, None]


@dataclass(frozen=True)
class Notice(Event):
    """Something that the user should know and that stops nothing."""

    level: Literal["info", "warning", "error"]
    title: str
    hint: str = ""


@dataclass(frozen=True)
class Blocked(Notice):
    """A job is blocked, for example by a full disk; no work is lost. Advancing the job tries again."""

    json_type = "Halted"


@dataclass(frozen=True)
class JobFailed(Event):
    """A job ended with an error. Made only where a job is driven; `details` is the traceback of a bug, else empty."""

    title: str
    hint: str = ""
    details: str = ""


@dataclass(frozen=True)
class Progress(Event):
    """`done` of `total` units of `what` ('sprites read'); `total` 0 means unknown."""

    done: int
    total: int
    what: str


@dataclass(frozen=True, eq=False)
class RunStarted(Event):
    """Training is about to take its first step, or its first after a resume (`first_step` > 0)."""

    path: Path
    recipe: str
    device: str
    precision: str
    parameters: int
    train_count: int
    heldout_count: int
    first_step: int
    elapsed_s: float
    started_from: str = ""  # the model whose weights it has before its first step


@dataclass(frozen=True)
class RolledBack(Event):
    """A loss or a gradient was no number at `failed_step`: training goes on from `step`, up to which all is well.

    lr_scale: what is left of the learning rate of the settings, 0 to 1.
    """

    json_type = "SteppedBack"

    failed_step: int
    step: int
    lr_scale: float


@dataclass(frozen=True, eq=False)
class LossChunk(Event):
    """The steps of one tick: `losses` and `grad_norms` are float32 [n], for steps first_step .. first_step + n - 1.

    A norm is 0 where the step was skipped, its scale being too large for fp16.
    """

    first_step: int
    losses: NDArray[np.float32]
    grad_norms: NDArray[np.float32]
    lr: float
    sprites_per_s: float
    elapsed_s: float  # training time, pauses not counted
    eta_s: float  # infinite while unknown
    epoch: float
    memory_bytes: int  # in use on the device; the process's own on a CPU


@dataclass(frozen=True, eq=False)
class SamplesReady(Event):
    """Live samples of the fixed seed after `step` steps; `captions` is one short text for each, or empty.

    numbers, true_numbers: float32 [N, T], what a regression says of these held-out sprites and what is true, NaN where
    that is missing; None for other recipes.
    """

    step: int
    sprites: Rgba
    captions: tuple[str, ...] = ()
    numbers: NDArray[np.float32] | None = None
    true_numbers: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class SamplesSpaced(Event):
    """Seconds of training between live samples: `asked_s` by the settings, `actual_s` because drawing is slow.

    drawing_s: seconds that the newest samples took to draw.
    """

    asked_s: float
    actual_s: float
    drawing_s: float


@dataclass(frozen=True, eq=False)
class Validated(Event):
    """Figures on the held-out sprites after `step` steps; 'loss' is always among them.

    `confusion` counts sprites as int64 [true class, predicted class]; None for recipes that predict no class.
    baseline: the same figures of a constant prediction; empty for recipes without one.
    pairs: float32 [2, N, T], predicted and true numbers of sprites, NaN where unknown; None for other recipes.
    """

    step: int
    metrics: Mapping[str, float]
    confusion: NDArray[np.int64] | None = None
    baseline: Mapping[str, float] = field(default_factory=dict)
    pairs: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class QualityMeasured(Event):
    """The quality of new sprites after `step` steps, beside that of real ones.

    against: the real sprites that the distance is taken from; those learnt from, where too few are held out.
    """

    step: int
    quality: Quality
    against: Literal["held-out", "training"] = "held-out"


@dataclass(frozen=True)
class Advised(Event):
    """Whether to go on training, judged by the figures after `step` steps: a verdict and its reason in a sentence.

    best_step: the step of the best checkpoint, by the measurements up to now.
    """

    step: int
    verdict: Literal["improving", "good enough", "copying"]
    why: str
    best_step: int


@dataclass(frozen=True)
class CheckpointSaved(Event):
    step: int
    path: Path


@dataclass(frozen=True)
class RunFinished(Event):
    """Training has ended and its work is on disk. 'finished': the budget is used up, or it was good enough or copying
    and its settings have it stop then; 'stopped': on request.
    """

    reason: Literal["finished", "stopped"]
    step: int
    elapsed_s: float
    path: Path


@dataclass(frozen=True, eq=False)
class SpritesGenerated(Event):
    """New sprites and the class index of each: int64 [N]; -1 where no class was asked for.

    keep: bool [N, S, S], pixels that were given and stay as they are, whatever the colours; None: there are none.
    titles: what each is, where its class and its place don't say it.
    """

    sprites: Rgba
    labels: NDArray[np.int64]
    model: str
    seed: int
    keep: NDArray[np.bool_] | None = None
    titles: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Classified(Event):
    """Probabilities float32 [N, K] of the classes for each sprite, in the order given."""

    probabilities: NDArray[np.float32]
    class_names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class NumbersPredicted(Event):
    """Numbers float32 [N, T] of each sprite, in the order given and each in its own unit."""

    numbers: NDArray[np.float32]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Exported(Event):
    """A model is on disk and was read back.

    difference: the largest from what the live model gives, as a share of the largest output (see `exporting.compare`).
    snippets: lines that load and use it, by the language that they are in. size_bytes: of all files together.
    card: the files that say where it comes from, which lie beside it; none for a model of no run.
    """

    paths: tuple[Path, ...]
    difference: float
    snippets: Mapping[str, str]
    size_bytes: int
    card: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Distilled(Event):
    """A network that draws in few looks is kept with a checkpoint.

    sprites_per_s: of it, usual_sprites_per_s: of the model that taught it, drawing the same sprites. alike: share of
    their pixels that hardly differ (16 of 255 levels at most).
    """

    step: int
    sprites_per_s: float
    usual_sprites_per_s: float
    alike: float


@dataclass(frozen=True)
class Check:
    """One thing that was looked at, in a sentence, and whether it is as it should be; None: it can't be told."""

    words: str
    holds: bool | None


@dataclass(frozen=True)
class Verified(Event):
    """Whether a file is as it was, and belongs to its run."""

    path: Path
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing was found that is not as it should be."""
        return all(check.holds is not False for check in self.checks)


@dataclass(frozen=True)
class Evaluated(Event):
    """The quality of sprites: figures by name (see `core.metrics.FIGURES`) of several sets of sprites.

    'new': the sprites to judge. For comparison: 'real', real sprites against other real ones, the best there is;
    'cheat', the training sprites themselves.
    """

    title: str
    count: int
    heldout_count: int
    training_count: int
    figures: Mapping[str, Mapping[str, float]]
