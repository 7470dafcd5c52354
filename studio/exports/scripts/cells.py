"""The cells of the exported training script: explanations, copied sources and code, chosen to match the run."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from studio.core.config import TrainingConfig
from studio.exports.base import ExportableModel
from studio.exports.scripts import attribute_code, set_code
from studio.exports.scripts import cell_code as code
from studio.exports.source_code import collect, fill_in

_LONGEST_VALUES = 102  # characters, on a line of 120
PACKAGES = ("torch", "numpy")  # allowed imports of copied sources


@dataclass(frozen=True)
class Cell:
    """A part of the script, explained for learners."""

    title: str
    text: str
    sources: tuple[str, ...] = ()  # names of classes and functions to copy
    code: str = ""  # appended


_VALIDATED = "Results on the validation set, which the network was not trained on."
_FLOW = "Sampling starts from Gaussian noise at t = 0 and follows the network's velocity field to a sprite at t = 1. "
_RESULTS = {
    "sprites": Cell(
        "Sample new sprites",
        "The studio also snaps the colours and the alpha to those of the training sprites, and detects copies of "
        "training sprites.",
        ("draw", "to_rgba"), code.SAVE_SHEET + code.SAMPLE,
    ),
    "sets": Cell(
        "Complete sets", "Results on validation sets, of which the network sees the first cell alone.",
        ("complete", "draw_missing", "normal_rows"), code.SAVE_SHEET + set_code.COMPLETE,
    ),
    "labels": Cell("Predict", _VALIDATED, (), code.SAVE_SHEET + code.CLASSIFY),
    "numbers": Cell("Predict", _VALIDATED, (), code.SAVE_SHEET + code.REGRESS),
}  # fmt: skip
_BY_ATTRIBUTES = {"sprites": attribute_code.SAMPLE, "labels": attribute_code.CLASSIFY}


def stand_ins(config: TrainingConfig) -> dict[str, str]:
    """Return the type names to replace in source code that is copied into the script: old name to new name."""
    own = type(config)
    configs = {kind.__name__: own.__name__ for kind in own.__mro__ if issubclass(kind, TrainingConfig)}
    pixels = {"Rgba": "NDArray[np.uint8]", "Mask": "NDArray[np.bool_]"}
    return {**configs, **pixels, "Spec": "Sprites", "Value": "Any"}


def cells_for(model: ExportableModel) -> list[Cell]:
    """Return the cells of a training script that follow the settings cell, from data to results."""
    network, config = str(model.architecture["class"]), model.training.config
    items = [item for item in model.training.portable if item.__name__ == model.training.loss_name]
    used = re.findall(r"\.(\w+)", collect(items, {*stand_ins(config), "Batch", "BatchRng", "spec"}, PACKAGES).code)
    results = _RESULTS[model.makes]
    if model.attributes:
        results = replace(results, code=code.SAVE_SHEET + _BY_ATTRIBUTES[model.makes])
    if "flow" in model.capabilities:
        results = replace(results, text=_FLOW + results.text)
    return [
        Cell(
            "Data",
            "The sprites of the run, or a folder of PNG files. The studio also imports sprite sheets, Aseprite files "
            "and archives, repairs common problems, and streams data sets that are larger than the memory.",
            (),
            _data(model),
        ),
        Cell(
            "Validation set",
            "Some sprites are held out to measure the network on sprites it was not trained on. Near duplicates form a "
            "group, and a group is never split: a duplicate in the training set would make validation too easy. The "
            "studio finds near duplicates; sprites from a folder each form their own group here.",
            ("heldout_groups",),
            code.SPLIT,
        ),
        _batches(model, used),
        Cell(
            "Network",
            "The architecture, copied from the studio. Shapes: B sprites in a batch, 4 channels (RGBA), S x S pixels.",
            (network, "arguments", "statistics", "subsample"),
            _network(model),
        ),
        Cell(
            "Loss",
            "The number that training minimises, the mean over a batch.",
            (model.training.loss_name,),
            _random(used),
        ),
        _optimizer(model),
        Cell(
            "Training loop",
            "The studio's loop also saves checkpoints, rolls back if a loss is NaN, splits batches that don't fit into "
            "GPU memory, measures the validation loss, draws samples, and computes in bf16 or fp16.",
            (),
            fill_in(code.TRAINING, {"network": network, "stacked": set_code.STACKED if model.makes == "sets" else ""}),
        ),
        results,
        Cell(
            "Run",
            "Train the network (or load the trained weights) and save the results.",
            (),
            code.MAIN.replace("{threads}", code.THREADS if config.threads else ""),
        ),
    ]


def _optimizer(model: ExportableModel) -> Cell:
    """Create the cell of the optimizer, the learning rate and the EMA weights."""
    name = model.training.config.optimizer
    text = (
        "The learning rate warms up, stays at its peak, then decays. The final model uses an exponential moving "
        "average (EMA) of the weights, which is less noisy than the weights of the last step."
    )
    is_muon = name == "muon" and any(weight.ndim == 4 for weight in model.network.parameters())
    sources = (*(("orthogonalize",) if is_muon else ()), "learning_rate", "ema_decay")
    made = code.MUON if is_muon else code.ADAM if name == "adam" else code.ADAMW
    return Cell("Optimizer, learning rate and EMA", text, sources, made)


def _data(model: ExportableModel) -> str:
    """Return the code that reads the sprites."""
    parts = dict.fromkeys(("take", "layout", "read_layout", "read_values", "int16"), "")
    if model.makes == "sets":
        parts |= {"take": set_code.TAKE_SETS, "layout": set_code.LAYOUT, "read_layout": set_code.READ_LAYOUT}
        return set_code.STACKED_SETS + fill_in(code.SPRITES, parts) + set_code.READ_CELL_FOLDERS
    if model.makes != "sprites" or _has_statistics(model):
        parts["take"] = code.TAKE
    if model.attributes:
        parts |= {"read_values": attribute_code.READ_VALUES, "int16": '"I16": np.int16, '}
        labels = attribute_code.LABELS + (attribute_code.SPEC if model.makes == "labels" else "")
        return labels + fill_in(code.SPRITES, parts) + attribute_code.READ_LABELS_CSV
    return fill_in(code.SPRITES, parts) + (
        code.READ_LABELS_CSV if model.makes == "numbers" else code.READ_CLASS_FOLDERS
    )


def _random(used: Collection[str]) -> str:
    """Return the class that draws random numbers. used: attributes read by the loss."""
    methods = "".join(method for name, method in code.RANDOM.items() if name in used)
    return code.BATCH_RNG.replace("{batch}", code.KEPT_BATCH if "previous" in used else "") + methods


def _batches(model: ExportableModel, used: Collection[str]) -> Cell:
    """Create the cell that makes batches. used: attributes read by the loss; unread batch fields are left out."""
    config = model.training.config
    text = (
        "The seed and the step number alone decide which sprites a batch contains and how they are augmented, so the "
        "studio can resume a run exactly where it stopped. The studio keeps all sprites on the device as uint8."
    )
    if not (config.shift_px or config.flip):
        text += " This run had no augmentation; the studio can also shift and mirror sprites."
    sources = ("step_seed", "shuffled_indices", *(("shift",) if config.shift_px else ()), "to_input")
    has_labels = "augment_labels" in used
    augmented = code.AUGMENT_LABELS if has_labels else ""
    if config.shift_px:
        augmented += code.SHIFT.replace("{moves}", "augment_labels[:, 1:]" if has_labels else "_")
    if config.flip:
        augmented += code.FLIP + (code.FLIP_LABEL if has_labels else "")
    fields = {name: parts for name, parts in code.BATCH_FIELDS.items() if name == "x" or name in used}
    declared = "\n".join(f"    {name}: {kind}" for name, (kind, _) in fields.items())
    values = ", ".join(value for _, value in fields.values())
    if len(values) > _LONGEST_VALUES:
        values = "".join(f"\n        {value}," for _, value in fields.values()) + "\n    "
    parts = {"fields": declared, "augmented": augmented, "values": values}
    batches = fill_in(code.BATCHES, {**parts, "examples": "StackedSets" if model.makes == "sets" else "Sprites"})
    return Cell("Batches", text, sources, batches)


def _has_statistics(model: ExportableModel) -> bool:
    """Return whether the network has buffers computed from the training set."""
    return any(item.__name__ == "statistics" for item in model.training.portable)


def _network(model: ExportableModel) -> str:
    """Return the code that creates the network."""
    is_subsampled = any(item.__name__ == "subsample" for item in model.training.portable)
    training = "training_indices(sprites)"
    sampled = f"subsample(sprites, {training})" if is_subsampled else f"sprites.take({training})"
    buffers = code.BUFFERS.replace("{sampled}", sampled) if _has_statistics(model) else ""
    return fill_in(code.NETWORK, {"buffers": buffers, "network": model.architecture["class"]})
