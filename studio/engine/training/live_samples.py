"""Live samples of a training: new sprites from a fixed seed, reconstructions, or predictions for validation sprites."""

from collections.abc import Sequence

import numpy as np

from studio.core import formatting
from studio.core.events import Classified, Events, NumbersPredicted, SamplesReady, SetsDrawn
from studio.data.sprites import unstack
from studio.engine.control.control import Control, retry_until_writable, until_stopped
from studio.engine.models.model import TrainedModel
from studio.engine.runs.samples import SAMPLE_COLUMNS, save_samples
from studio.engine.sampling.complete import complete
from studio.engine.sampling.generate import can_reconstruct, draw, predict, reconstruct
from studio.engine.sampling.settings import CompleteSettings, GenerateSettings, GivenSets
from studio.engine.training.state import Training
from studio.recipes.set_tasks import first_of_rows

SAMPLE_COUNT = 16
_PAIR_COUNT = SAMPLE_COUNT // 2  # reconstructions, each beside its original
SAMPLE_STEPS = 10  # solver steps
_FEWEST_SETS = 2
_MOST_ROWS_SHOWN_WHOLE = 2
SAMPLE_SEED = 7


def live_samples(training: Training, control: Control) -> Events:
    """Draw new sprites from the fixed seed, or reconstruct or predict validation sprites, as the model allows.

    Yields Progress, then one SamplesReady, saved in the run folder; none after `control.stop`.
    """
    with training.side_work.skip_if_full("live samples"):
        model = training.model()
        if model.recipe.makes == "sets":
            yield from until_stopped(_completed_samples(training, model, control), control)
        elif model.recipe.makes != "sprites":
            samples = _heldout_samples(training, model)
            if len(samples.sprites):
                yield from retry_until_writable(control, save_samples, training.run, samples)
            yield samples
        else:
            make = _reconstructed_samples if can_reconstruct(model.recipe) else _drawn_samples
            yield from until_stopped(make(training, model, control), control)


def _drawn_samples(training: Training, model: TrainedModel, control: Control) -> Events:
    """Draw sprites of the most common classes, from equal noise every time; at step 0, show the noise."""
    names = training.spec.class_names
    counts = np.bincount(training.train_set.labels_host, minlength=len(names))  # sprites per class: [classes]
    common = np.argsort(-counts, kind="stable")[:SAMPLE_COUNT]  # the most common classes
    labels = np.resize(np.sort(common), SAMPLE_COUNT)  # repeated until there are enough: int64 [16]
    how = GenerateSettings(steps=SAMPLE_STEPS, seed=SAMPLE_SEED)
    if training.step:
        sprites = yield from draw(model, labels, how)
    else:  # an untrained network draws flat grey
        sprites = yield from draw(model, labels, how.replace(true_pixels=False), stop_after=1)
    samples = SamplesReady(training.step, sprites, tuple(names[label] for label in labels))
    yield from retry_until_writable(control, save_samples, training.run, samples)
    yield samples


def _reconstructed_samples(training: Training, model: TrainedModel, control: Control) -> Events:
    """Reconstruct some validation sprites, or training sprites if the validation set is empty."""
    if len(training.heldout_sprites):
        sprites, labels = training.heldout_sprites, training.heldout.labels_host
    else:
        sprites, labels = training.train_sample.rgba, training.train_sample.labels
    places = slice(None, None, max(1, len(sprites) // _PAIR_COUNT))
    originals, classes = sprites[places][:_PAIR_COUNT], labels[places][:_PAIR_COUNT]
    made = yield from reconstruct(model, originals, classes, true_pixels=training.step > 0)
    captions = tuple(training.spec.class_names[label] for label in classes)
    samples = SamplesReady(training.step, made, captions, originals=originals)
    yield from retry_until_writable(control, save_samples, training.run, samples)
    yield samples


def _completed_samples(training: Training, model: TrainedModel, control: Control) -> Events:
    """Complete some validation sets from their first cell, or training sets if the validation set is empty."""
    if len(training.heldout_sprites):
        stacked, has_cell = training.heldout_sprites, training.heldout.targets.cpu().numpy() > 0
    else:
        sets = training.train_sample.stacked_sets(np.arange(len(training.train_sample)))
        stacked, has_cell = sets.rgba, sets.targets > 0
    cells, names = unstack(stacked), training.spec.cells  # uint8 [M, C, S, S, 4]
    shown, captions = _shown_cells(names)
    first = int(has_cell.any(0).argmax())  # the first cell, unless all sets lack it
    count = max(_FEWEST_SETS, SAMPLE_COUNT // len(shown))
    usable = np.flatnonzero(has_cell[:, first])
    chosen = cells[usable[:: max(1, len(usable) // count)][:count]]
    given = np.zeros(chosen.shape[:2], np.bool_)
    given[:, first] = True
    how = CompleteSettings(seed=SAMPLE_SEED)
    work = complete(model, how, GivenSets(tuple(map(str, range(len(chosen)))), chosen, given))
    for event in work:
        if isinstance(event, SetsDrawn):
            drawn, true = (sets[:, shown].reshape(-1, *sets.shape[2:]) for sets in (event.cells, chosen))
            is_given = tuple(number == first for number in shown)
            samples = SamplesReady(training.step, drawn, captions * len(chosen), originals=true, given=is_given)
            yield from retry_until_writable(control, save_samples, training.run, samples)
            yield samples
        else:
            yield event


def _shown_cells(names: Sequence[str]) -> tuple[list[int], tuple[str, ...]]:
    """Return the cells of a set to show, and their captions: the first cell of each row, or all cells of few rows."""
    leads = [number for number, is_lead in enumerate(first_of_rows(names)) if is_lead]
    if len(leads) > _MOST_ROWS_SHOWN_WHOLE:
        shown = leads[:SAMPLE_COLUMNS]
        return shown, tuple(names[number].partition("/")[0] for number in shown)
    shown = list(range(min(len(names), SAMPLE_COLUMNS)))
    captions = (names[number].split("/", 1)[-1] if len(leads) == 1 else names[number] for number in shown)
    return shown, tuple(captions)


def _heldout_samples(training: Training, model: TrainedModel) -> SamplesReady:
    """Return some validation sprites with the model's prediction for each: a class or numbers."""
    places = slice(None, None, max(1, len(training.heldout_sprites) // SAMPLE_COUNT))
    chosen = training.heldout_sprites[places][:SAMPLE_COUNT]
    *_, found = predict(model, chosen)
    if isinstance(found, Classified):
        true_labels = training.heldout.labels_host[places][:SAMPLE_COUNT].tolist()
        pairs = zip(found.probabilities.argmax(1).tolist(), true_labels, strict=True)
        return SamplesReady(training.step, chosen, tuple(_verdict(found.class_names, *pair) for pair in pairs))
    assert isinstance(found, NumbersPredicted)
    true = training.heldout.targets[places][:SAMPLE_COUNT].cpu().numpy()
    rows = zip(found.numbers.tolist(), true.tolist(), strict=True)
    captions = tuple("; ".join(map(formatting.predicted_and_true, *row)) for row in rows)
    return SamplesReady(training.step, chosen, captions, found.numbers, true)


def _verdict(class_names: Sequence[str], predicted: int, true: int) -> str:
    """Return a prediction's caption: the predicted class, with a cross and the true class if it is wrong."""
    if predicted == true:
        return class_names[predicted]
    return f"✗ {class_names[predicted]} (is {class_names[true]})"
