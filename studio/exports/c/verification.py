"""What all that runs the C code has in common: how exact the weights are, and how it is compared with the model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import torch
from torch import Tensor

from studio.core.config import Config, setting
from studio.exports.base import LARGEST_DIFFERENCE, PROBE, ExportableModel, Probe, RecipeTraits
from studio.exports.onnx_graph import PredictorModule

_INT8_DIFFERENCE = 0.1


@dataclass(frozen=True)
class CConfig(Config):
    """How the weights are held."""

    weights: str = setting(
        "fp32",
        "int8 makes the weights about a quarter as large. What is drawn is then another sprite of the same kind: by "
        "how much one look of the network differs is measured and shown.",
        choices=("fp32", "int8"),
    )


def problem(recipe: RecipeTraits) -> str:
    """Why C code can't do what a model of that recipe does, in a sentence; empty when it can."""
    if recipe.makes == "sprites" and "flow" not in recipe.capabilities:
        return f"Its code follows a velocity from noise to a sprite, and the recipe {recipe.title} gives none."
    return ""


def probe_for(config: CConfig) -> Probe:
    """Where it is compared with the model: int8 in a single look, before what looks are off by adds up."""
    return PROBE if config.weights == "fp32" else Probe(guidance=1, steps=1)


def probe_labels_and_seeds(model: ExportableModel, config: CConfig) -> list[tuple[int, int]]:
    """The class and the seed of each sprite of the probe."""
    probe, apart = probe_for(config), int(model.solver["places_apart"])
    labels = probe.labels(len(model.class_names)).tolist()
    return [(label, probe.seed + apart * place) for place, label in enumerate(labels)]


def add_checksum(text: str, opening: str, closing: str) -> str:
    """The text with a last line, a comment between these two, that tells whether it was changed."""
    return f"{text}\n{opening} sha256 of all above: {hashlib.sha256(text.encode()).hexdigest()} {closing}\n"


def checksum_matches(text: str, opening: str, closing: str) -> bool:
    """Whether a text is as it was sealed."""
    body, _, _ = text.rpartition(f"\n{opening} sha256 of all above: ")
    return text == add_checksum(body, opening, closing)


def live(model: ExportableModel, config: CConfig) -> Tensor:
    """What the model gives there: sprites float32 [count, 4, S, S] as they are drawn, or what it predicts."""
    with torch.no_grad():
        if model.makes != "sprites":
            return PredictorModule(model)(PROBE.pixels(model.size))  # type: ignore[no-any-return]
        probe = probe_for(config)
        assert model.noise is not None
        labels = probe.labels(len(model.class_names))
        return model.draw_from(model.network, model.noise, labels, probe.guidance, probe.steps).float()


def largest_difference(config: CConfig) -> float:
    """By how much it may differ from the model."""
    return LARGEST_DIFFERENCE if config.weights == "fp32" else _INT8_DIFFERENCE
