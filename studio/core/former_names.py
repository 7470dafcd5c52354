"""Former names of the plug-in API.

A plug-in that was written for version 0.1 works until version 0.3: the tables below map each former name to its
present one, and every use of a former name issues a DeprecationWarning. The former name of a setting is declared at
the setting itself: `setting(former_name=...)`.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from types import ModuleType
from typing import Any

DROPPED_IN = "0.3"  # the version that deletes MODULES, NAMES and MEMBERS

MODULES = {
    "studio.core.children": "studio.core.worker_process",
    "studio.core.places": "studio.core.paths",
    "studio.core.wording": "studio.core.formatting",
    "studio.data.naming": "studio.core.names",
    "studio.data.source_files": "studio.data.files.source_files",
    "studio.engine.batches": "studio.engine.steps.batches",
    "studio.engine.types": "studio.engine.devices.types",
    "studio.exports.cards": "studio.exports.model_cards",
    "studio.exports.graphs": "studio.exports.onnx_graph",
    "studio.recipes.strides": "studio.recipes.few_step",
}
_FILES = "studio.data.files.source_files"
_CAPABILITIES = "studio.recipes.capabilities"
# Former name -> present name, by present module. A dotted present name has moved to another module.
NAMES: dict[str, dict[str, str]] = {
    "studio.core.config": {"LENGTHS": "LENGTH_SETTINGS"},
    "studio.core.curves": {
        "MOST_LINES": "MAX_CURVES", "TINTS": "CURVE_COLOURS", "sampled": "decimate", "smooth": "smooth_curve",
    },
    "studio.core.discovery": {"pick": "find_plugin", "plugin_of": "failing_plugin"},
    "studio.core.events": {"Halted": "Blocked", "SteppedBack": "RolledBack"},
    "studio.core.files": {"exporting": "wrap_export_errors", "why_not_written": "why_unwritable"},
    "studio.core.formatting": {
        "agreement": "describe_agreement", "beside": "predicted_and_true", "error_words": "describe_error",
        "quicker": "describe_speedup",
    },
    "studio.core.generators": {"returned": "run_to_end"},
    "studio.core.metrics": {"title_of": "metric_title", "written": "format_metric"},
    "studio.core.names": {
        "composed": "nfc", "folded": "studio.data.atlases.base.casefolded", "ignored": f"{_FILES}.is_ignored",
        "is_archive": f"{_FILES}.is_archive", "made_by_other_program": f"{_FILES}.is_foreign",
        "shown": "escape_unprintable",
    },
    "studio.core.shell": {"command": "command_line", "quoted": "quote"},
    "studio.data.atlases.base": {
        "all_named": "siblings_with_suffix", "beginning": "read_start", "description": "read_description",
        "find_beside": "find_sibling", "last_part": "base_name", "means": "matches_path",
        "too_large": "exceeds_size_limit",
    },
    _FILES: {
        "MOST_FILES": "MAX_FILES", "Picture": "SourceImage", "Quarantined": "ImportIssue", "Refused": "UnreadableFile",
        "Remark": "SourceIssue", "Skipped": "SkippedItem", "opened": "open_regular_file",
    },
    "studio.data.sources.base": {"Picture": "SourceImage", "Refused": "UnreadableFile", "Remark": "SourceIssue"},
    "studio.engine.devices.types": {"GenerateSettings": "studio.engine.sampling.settings.GenerateSettings"},
    "studio.engine.steps.batches": {
        "Chosen": "RawBatch", "at_most": "stride_subsample", "most_sampled": "max_sampled",
        "on_device": "to_device", "premultiplied": "premultiply", "sampled": "subsample", "shifted": "shift",
        "shuffled": "shuffled_indices", "straight": "unpremultiply", "augmented": "augment",
    },
    "studio.exports.html_page": {
        "figures_table": "numeric_table", "named_rows": "key_value_table", "pixel_picture": "pixel_image",
    },
    "studio.exports.onnx_graph": {
        "Graph": "ExportGraph", "Predictor": "PredictorModule", "Sampler": "SamplerModule", "Step": "VelocityModule",
        "problem": "graph_problem", "unused": "unused_settings",
    },
    "studio.exports.plot": {"dress": "style_axes", "svg_of": "to_svg"},
    "studio.exports.png": {
        "encoded": "encode_png", "encoded_indices": "encode_indexed_png", "grid_of": "sheet_layout",
        "sealed": "add_checksum", "sheet_contents": "sheet_files", "sources_of": "read_provenance",
        "unsealed": "encode_without_checksum",
    },
    "studio.lab.experiments.base": {
        "Bench": "ExperimentContext", "evenly": "evenly_spaced", "while_finite": "finite_prefix",
    },
    "studio.recipes.base": {
        "Ability": f"{_CAPABILITIES}.Capability", "EditCondition": f"{_CAPABILITIES}.EditCondition",
        "Given": f"{_CAPABILITIES}.EditCondition", "Student": f"{_CAPABILITIES}.Student",
    },
    "studio.recipes.colours": {
        "colour_errors": "colour_loss", "in_rows": "select_rows", "palette_for": "choose_palette",
        "some_of": "reduce_palette", "some_rows": "choose_rows",
    },
    "studio.recipes.few_step": {"InStrides": "FewStepStudent", "path": "trajectory"},
    "studio.recipes.flow": {
        "Periodic": "CircularPadding", "encode": "invert", "guided": "guided_velocity", "mirrored": "mirror_halves",
        "moments": "timesteps", "overlapping": "tiled_velocity", "tied": "average_tied",
    },
    "studio.recipes.unet": {"WithAllOdds": "SoftColours"},
}  # fmt: skip
# Settings in run.json, by recipe; "" for all recipes. They equal the `former_name` of each setting, but need no torch.
SETTINGS: dict[str, dict[str, str]] = {
    "": {"watch_layers": "log_layer_stats"},
    "generator": {"filling": "inpaint_share", "label_drop": "class_dropout"},
}
# Methods and class attributes that a plug-in's subclass may define, by the module and name of their base.
MEMBERS: dict[str, dict[str, str]] = {
    "studio.lab.experiments.base.Experiment": {"misfit": "unsupported_reason", "told": "template_values"},
    "studio.recipes.base.Recipe": {"can": "capabilities", "knows_filling": "knows_inpainting", "path": "trajectory"},
    "studio.recipes.capabilities.Student": {"strides": "steps"},
}


def install() -> None:
    """Make imports find modules, and names in modules, by their former names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def alias(old: str, new: str) -> property:
    """Return a deprecated property that reads the attribute `new`. old: former name, 'Class.name', for the warning."""

    def read(instance: object) -> Any:
        _warn(old, new)
        return getattr(instance, new)

    return property(read)


def rename_members(kind: type) -> None:
    """Rename members of a plug-in class from former to present names. Call from `__init_subclass__`."""
    for base in kind.__mro__[1:]:
        for old, new in MEMBERS.get(f"{base.__module__}.{base.__qualname__}", {}).items():
            if old in vars(kind) and new not in vars(kind):
                _warn(f"{kind.__qualname__}.{old}", new)
                setattr(kind, new, vars(kind)[old])


class _Finder:
    """Import finder for former names of modules and of their attributes.

    A former module name (MODULES) loads an empty module that reads attributes from the present module. A module with
    renamed attributes (NAMES) gets a `__getattr__`. The finder has no base class, because importing importlib.abc
    takes several milliseconds.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname in MODULES:
            return importlib.machinery.ModuleSpec(fullname, self)  # type: ignore[arg-type]
        if fullname not in NAMES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                module.__dict__.setdefault("__getattr__", partial(_attribute, fullname, fullname))

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None  # Python creates an empty module

    def exec_module(self, module: ModuleType) -> None:
        _warn(module.__name__, MODULES[module.__name__])
        module.__dict__["__getattr__"] = partial(_attribute, MODULES[module.__name__], module.__name__)


def _attribute(module: str, imported: str, name: str) -> Any:
    """Return an attribute of `module` by its present or former name. imported: module name in the plug-in's import."""
    present = NAMES.get(module, {}).get(name, name)
    if present == name and imported == module:
        raise AttributeError(f"module {imported!r} has no attribute {name!r}")
    if present != name:
        _warn(f"{imported}.{name}", present)
    owner, _, last = present.rpartition(".")
    return getattr(importlib.import_module(owner or module), last)


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is now {new}; version {DROPPED_IN} drops the former name.", DeprecationWarning, stacklevel=3)
