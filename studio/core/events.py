"""Events that jobs yield while they run: frozen dataclasses.

Arrays in events are CPU copies that nobody modifies. Sprites are uint8 [N, H, W, 4], RGBA with straight alpha.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Rgba
from studio.core.metrics import Quality


@dataclass(frozen=True)
class Event:
    """Base of all events."""

    json_type: ClassVar[str] = ""  # the 'type' in --json; '': the name of the class


# Metadata of a dataclass field that --json leaves out.
NOT_IN_JSON: Mapping[str, bool] = {"json": False}

# A job: advance the generator to work on, close it to cancel.
Events = Generator[Event, None, None]


# Any job


@dataclass(frozen=True)
class Notice(Event):
    """A message for the user about something that does not stop the job."""

    level: Literal["info", "warning", "error"]
    title: str
    hint: str = ""
    topic: str = ""  # 'topic#section' of the guide


@dataclass(frozen=True)
class Blocked(Notice):
    """A job is blocked, for example by a full disk; no work is lost. Requesting the next event tries again."""

    json_type = "Halted"


@dataclass(frozen=True)
class JobFailed(Event):
    """A job ended with an error. details: the traceback of a bug, else ''. Created only by the code that runs jobs."""

    title: str
    hint: str = ""
    details: str = ""
    topic: str = ""  # 'topic#section' of the guide


@dataclass(frozen=True)
class Progress(Event):
    """Progress of a job: `done` out of `total` units of `what` ('sprites read'); total 0 means unknown."""

    done: int
    total: int
    what: str

    def text(self) -> str:
        """Return '1,200 of 19,200 sprites read', or only `what` before anything is counted."""
        if not self.done and not self.total:
            return self.what
        of = f" of {self.total:,}" if self.total else ""
        return f"{self.done:,}{of} {self.what}"


# Training


@dataclass(frozen=True, eq=False)
class RunStarted(Event):
    """Training is about to take its first step, or the first step after a resume (`first_step` > 0)."""

    path: Path
    recipe: str
    device: str
    precision: str
    parameters: int
    train_count: int
    heldout_count: int
    first_step: int
    elapsed_s: float
    started_from: str = ""  # the model that provides the initial weights
    examples: str = "sprites"  # noun for the counted examples: 'sprites' or 'characters'


@dataclass(frozen=True, eq=False)
class LossChunk(Event):
    """Losses and gradient norms of consecutive training steps."""

    first_step: int
    losses: NDArray[np.float32]  # [n], for steps first_step .. first_step + n - 1
    grad_norms: NDArray[np.float32]  # [n]; 0 for a step skipped because its loss scale was too large for fp16
    lr: float
    sprites_per_s: float
    elapsed_s: float  # training time without pauses
    eta_s: float  # infinite while unknown
    epoch: float
    memory_bytes: int  # the training's memory on the device; on a CPU, above the process's use before the training


@dataclass(frozen=True, eq=False)
class ClassPredictions:
    """The predicted class of each sprite of a validation."""

    sprites: NDArray[np.int64]  # [N], indices of the sprites in the run's data
    classes: NDArray[np.int64]  # [N], predicted classes


@dataclass(frozen=True, eq=False)
class ValueConfusion:
    """The confusion matrix of an attribute's values on the validation set."""

    counts: NDArray[np.int64]  # [true value, predicted value], of the sprites with a value
    predictions: ClassPredictions | None = None  # of values instead of classes; None if not recorded


@dataclass(frozen=True, eq=False)
class Validated(Event):
    """Metrics on the validation set after `step` steps; 'loss' is always included."""

    step: int
    metrics: Mapping[str, float]
    confusion: NDArray[np.int64] | None = None  # [true class, predicted class], counts; None without classes
    baseline: Mapping[str, float] = field(
        default_factory=dict
    )  # metrics of a constant prediction, if the recipe has it
    pairs: NDArray[np.float32] | None = None  # [2, N, T], predicted and true numbers, NaN if unknown; for regression
    predictions: ClassPredictions | None = None  # behind the confusion matrix; None if not recorded
    attributes: Mapping[str, ValueConfusion] = field(default_factory=dict)  # by attribute


@dataclass(frozen=True)
class QualityMeasured(Event):
    """The quality of generated sprites after `step` steps, and of real sprites."""

    step: int
    quality: Quality
    against: Literal["held-out", "training"] = "held-out"  # compared sprites; training if too few are held out


@dataclass(frozen=True)
class Advised(Event):
    """Advice whether to continue training, after `step` steps."""

    step: int
    verdict: Literal["improving", "good enough", "copying"]
    why: str  # reason for the verdict in a sentence
    best_step: int  # step of the best checkpoint so far


@dataclass(frozen=True, eq=False)
class SamplesReady(Event):
    """Live samples after `step` steps: new sprites, reconstructions, sets, or validation sprites with predictions."""

    step: int
    sprites: Rgba
    captions: tuple[str, ...] = ()  # a short text for each, or empty
    numbers: NDArray[np.float32] | None = None  # [N, T], predicted numbers of validation sprites, for regression
    true_numbers: NDArray[np.float32] | None = None  # [N, T], true numbers, NaN if unknown, for regression
    originals: Rgba | None = None  # the true sprites, for an autoencoder and for sets
    given: tuple[bool, ...] = ()  # [C], the given cells if every C consecutive sprites are the cells of a set

    def parts(self) -> tuple[int, ...]:
        """Return the numbers of given, true and drawn cells in a row of `cells`; empty unless the samples are sets."""
        missing = len(self.given) - sum(self.given)
        return (sum(self.given), missing, missing) if self.given else ()

    def cells(self) -> Rgba:
        """Return the cells for a picture of the samples: the sprites, then the originals.

        A set fills a row: given cells, true missing cells, drawn missing cells.
        """
        if self.originals is None:
            return self.sprites
        if self.given:
            return np.concatenate([self.originals, self.sprites])[self._set_rows()]
        return np.concatenate([self.sprites, self.originals])

    def cell_captions(self) -> tuple[str, ...]:
        """Return the captions of the `cells` of sets."""
        return tuple(np.resize(np.array(self.captions), 2 * len(self.sprites))[self._set_rows()].tolist())

    def _set_rows(self) -> NDArray[np.int64]:
        """Return the indices of `cells` of sets among the originals and the sprites after them."""
        given, numbers = np.array(self.given), np.arange(len(self.sprites)).reshape(-1, len(self.given))  # [M, C]
        drawn = numbers[:, ~given] + len(self.sprites)
        return np.concatenate([numbers[:, given], numbers[:, ~given], drawn], 1).ravel()


@dataclass(frozen=True)
class SamplesSpaced(Event):
    """Live samples are drawn less often than set, because drawing is slow."""

    asked_s: float  # set seconds of training between samples
    actual_s: float  # actual seconds of training between samples
    drawing_s: float  # seconds to draw the newest samples


@dataclass(frozen=True)
class CheckpointSaved(Event):
    """A checkpoint is on disk."""

    step: int
    path: Path


@dataclass(frozen=True)
class RolledBack(Event):
    """A loss or gradient was NaN or infinite at `failed_step`; training goes back to `step` and continues."""

    json_type = "SteppedBack"

    failed_step: int
    step: int
    lr_scale: float  # factor on the configured learning rate from now on, 0 to 1


@dataclass(frozen=True)
class RunFinished(Event):
    """Training has ended and is saved."""

    reason: Literal["finished", "stopped"]  # 'finished' by the budget or early stopping, 'stopped' on request
    step: int
    elapsed_s: float
    path: Path
    best_step: int | None = None  # step of the best checkpoint; None without one


# Using a model


@dataclass(frozen=True, eq=False)
class SpritesGenerated(Event):
    """Generated sprites."""

    sprites: Rgba
    labels: NDArray[np.int64]  # [N], the class requested for each, -1 for none
    model: str
    seed: int
    keep: NDArray[np.bool_] | None = None  # [N, S, S], pixels copied unchanged from input sprites
    titles: tuple[str, ...] = ()  # a title for each sprite, or empty if class and position say enough


@dataclass(frozen=True, eq=False)
class SetsDrawn(Event):
    """Completed or new sets. The candidates of a set follow each other."""

    cells: Rgba  # uint8 [N, C, S, S, 4]
    given: NDArray[np.bool_]  # [N, C], cells copied unchanged from the input
    cell_names: tuple[str, ...]  # [C], 'down/step' or 'down'
    names: tuple[str, ...]  # [N], of the sets
    model: str
    seed: int


@dataclass(frozen=True, eq=False)
class Classified(Event):
    """Class probabilities of each sprite, float32 [N, K], in input order."""

    probabilities: NDArray[np.float32]
    class_names: tuple[str, ...]
    attributes: Mapping[str, Classified] = field(default_factory=dict)  # of the values instead of classes, by attribute


@dataclass(frozen=True, eq=False)
class NumbersPredicted(Event):
    """Predicted numbers for each sprite, float32 [N, T], in input order. names: the T numbers, with different units."""

    numbers: NDArray[np.float32]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Evaluated(Event):
    """Quality figures of several sets of sprites: figures[set][name], with names from `core.metrics.FIGURES`.

    Sets: 'new', the sprites to judge; 'real', real sprites, the best possible result; 'cheat', the training sprites,
    as if a model had copied them.
    """

    title: str
    count: int
    heldout_count: int
    training_count: int
    figures: Mapping[str, Mapping[str, float]]


# Files of a model


@dataclass(frozen=True)
class Exported(Event):
    """A model was exported and checked by loading it."""

    paths: tuple[Path, ...]
    difference: float  # largest deviation from the live output, as a share of the largest (see `exporting.compare`)
    snippets: Mapping[str, str]  # code that loads and uses the export, by language
    size_bytes: int  # all files together
    card: tuple[Path, ...] = ()  # files about the model's origin, beside the export; empty for a model without a run


@dataclass(frozen=True)
class Distilled(Event):
    """A distilled network, which draws in few steps, was saved with a checkpoint."""

    step: int
    sprites_per_s: float  # speed of the distilled network
    usual_sprites_per_s: float  # speed of its teacher
    alike: float  # share of pixels that differ by at most 16 of 255 levels from the teacher's


@dataclass(frozen=True)
class Check:
    """The result of checking a file: a sentence, and True, False, or None if unknown."""

    words: str
    holds: bool | None


@dataclass(frozen=True)
class Verified(Event):
    """The result of verifying an exported file: whether it is unchanged, and whether the named run exported it."""

    path: Path
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return all(check.holds is not False for check in self.checks)
