"""Settings and verification shared by the C file and the web page, which run the same C code."""

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
    """Settings of the C file and of the web page."""

    weights: str = setting(
        "fp32",
        "int8 stores the weights in a quarter of the space, but draws slightly different sprites. The export measures "
        "the difference of one forward pass.",
        choices=("fp32", "int8"),
    )


class CVerification:
    """Base of the two formats: accepts their models, and gives the outputs with which to compare the C code."""

    Config: type[Config] = CConfig

    def problem(self, recipe: RecipeTraits) -> str:
        if recipe.makes == "sprites" and "flow" not in recipe.capabilities:
            return f"The C code draws with flow matching, which the recipe {recipe.title} does not use."
        return "The C code can't complete sets. An ONNX file can." if recipe.makes == "sets" else ""

    def live(self, model: ExportableModel, config: CConfig) -> Tensor:
        with torch.no_grad():
            if model.makes != "sprites":
                return PredictorModule(model)(PROBE.pixels(model.size))  # type: ignore[no-any-return]
            probe = probe_for(config)
            assert model.noise is not None
            labels = probe.labels(len(model.class_names))
            return model.draw_from(model.network, model.noise, labels, probe.guidance, probe.steps).float()

    def largest_difference(self, model: ExportableModel, config: CConfig) -> float:
        return LARGEST_DIFFERENCE if config.weights == "fp32" else _INT8_DIFFERENCE


def probe_for(config: CConfig) -> Probe:
    """Return the inputs for the comparison. int8 uses a single solver step, because rounding errors add up."""
    return PROBE if config.weights == "fp32" else Probe(guidance=1, steps=1)


def probe_labels_and_seeds(model: ExportableModel, config: CConfig) -> list[tuple[int, int]]:
    """Return the class index (-1: any) and the seed of each sprite drawn for the comparison."""
    probe, stride = probe_for(config), int(model.solver["places_apart"])
    labels = probe.labels(len(model.class_names)).tolist()
    return [(label, probe.seed + stride * index) for index, label in enumerate(labels)]


def add_checksum(text: str, opening: str, closing: str) -> str:
    """Append a comment with the SHA-256 of a text. opening, closing: the comment marks of the language."""
    return f"{text}\n{opening} sha256 of all above: {hashlib.sha256(text.encode()).hexdigest()} {closing}\n"


def checksum_matches(text: str, opening: str, closing: str) -> bool:
    """Return whether a text ends with a comment that holds its correct SHA-256."""
    body, _, _ = text.rpartition(f"\n{opening} sha256 of all above: ")
    return text == add_checksum(body, opening, closing)
