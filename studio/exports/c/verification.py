"""Settings and verification shared by the C file and the web page, which run the same C code."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from studio.core.config import Config, setting
from studio.exports.base import LARGEST_DIFFERENCE, PROBE, ExportableModel, Probe, RecipeTraits, label_shares
from studio.exports.c.completing import ROUNDS, SetTables
from studio.exports.onnx_graph import PredictorModule

_INT8_DIFFERENCE = 0.1


@dataclass(frozen=True)
class CConfig(Config):
    """Settings for exporting the C file or the web page."""

    weights: str = setting(
        "fp32",
        "int8 stores the weights in a quarter of the space, but draws slightly different sprites. The export measures "
        "the difference of one forward pass.",
        choices=("fp32", "int8"),
    )


class CVerification:
    """Base class for the C file and the web page: rejects unsuitable recipes, computes reference outputs with torch."""

    Config: type[Config] = CConfig

    def problem(self, recipe: RecipeTraits) -> str:
        if recipe.makes == "sprites" and "flow" not in recipe.capabilities:
            return f"The C code draws with flow matching, which the recipe {recipe.title} does not use."
        return ""

    def live(self, model: ExportableModel, config: CConfig) -> Tensor:
        if model.makes == "sets":
            return model.draw_probe(model.network, ROUNDS) if draws_sets(config) else model.outputs(model.network)
        with torch.no_grad():
            if model.makes != "sprites":
                return PredictorModule(model)(PROBE.pixels(model.size))  # type: ignore[no-any-return]
            probe, counts = probe_for(config), model.label_counts
            assert model.noise is not None
            labels = label_shares(probe.label_indices(counts), counts) if model.attributes else probe.labels(counts[0])
            return model.draw_from(model.network, model.noise, labels, probe.guidance, probe.steps).float()

    def largest_difference(self, model: ExportableModel, config: CConfig) -> float:
        return LARGEST_DIFFERENCE if config.weights == "fp32" else _INT8_DIFFERENCE


def kind_of(model: ExportableModel) -> str:
    """Return 'drawing', 'completing' or 'predicting', as the C source files are named."""
    return {"sprites": "drawing", "sets": "completing"}.get(model.makes, "predicting")


def draws_sets(config: CConfig) -> bool:
    """Return whether to compare drawn sets. int8 compares odds instead, because rounding likely changes colours."""
    return config.weights == "fp32"


def probe_sets(model: ExportableModel, config: CConfig) -> Iterator[tuple[Tensor, Tensor, Tensor, int]]:
    """Yield the sets to compare: cells, given, chances, and the minimum palette size for the network.

    Drawn sets use the network's palette sizes in turn; odds use the largest size.
    """
    entries, (cells, given, chances) = SetTables.of(model).entries, model.probe_sets(ROUNDS)
    if not draws_sets(config):
        entries = entries[-1:]
        chances[:, 0, 1, 0, 0, 0] = torch.arange(len(chances)) / len(chances)  # chooses the palettes of `model.outputs`
    for number, inputs in enumerate(zip(cells, given, chances, strict=True)):
        yield *inputs, entries[number % len(entries)]


def probe_for(config: CConfig) -> Probe:
    """Return the inputs to compare with. int8 takes a single solver step, because rounding errors add up."""
    return PROBE if config.weights == "fp32" else Probe(guidance=1, steps=1)


def probe_labels_and_seeds(model: ExportableModel, config: CConfig) -> list[tuple[int, int, dict[str, str]]]:
    """Return class index (-1: any), seed and values by attribute for each sprite to compare."""
    probe, stride = probe_for(config), int(model.solver["places_apart"])
    found = []
    for number, (label, *codes) in enumerate(zip(*probe.label_indices(model.label_counts), strict=True)):
        chosen = zip(model.attributes.items(), map(int, codes), strict=True)
        values = {name: values[code] for (name, values), code in chosen if code >= 0}
        found.append((int(label), probe.seed + stride * number, values))
    return found


def add_checksum(text: str, opening: str, closing: str) -> str:
    """Append a comment with the text's SHA-256. opening, closing: the language's comment marks."""
    return f"{text}\n{opening} sha256 of all above: {hashlib.sha256(text.encode()).hexdigest()} {closing}\n"


def checksum_matches(text: str, opening: str, closing: str) -> bool:
    """Return whether a text ends with a comment containing the correct SHA-256."""
    body, _, _ = text.rpartition(f"\n{opening} sha256 of all above: ")
    return text == add_checksum(body, opening, closing)
