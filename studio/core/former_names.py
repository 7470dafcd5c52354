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
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

DROPPED_IN = "0.3"  # the version that deletes MODULES, NAMES and MEMBERS

MODULES = {
    "studio.core.children": "studio.core.worker_process",
    "studio.core.places": "studio.core.paths",
    "studio.core.wording": "studio.core.formatting",
    "studio.data.files.naming": "studio.core.names",
    "studio.data.naming": "studio.core.names",
    "studio.data.source_files": "studio.data.files.source_files",
    "studio.engine.batches": "studio.engine.steps.batches",
    "studio.engine.types": "studio.engine.devices.types",
    "studio.exports.graphs": "studio.exports.onnx_graph",
    "studio.recipes.strides": "studio.recipes.few_step",
}
NAMES: dict[str, dict[str, str]] = {  # by module, as it is called now
    "studio.core.events": {"Halted": "Blocked", "SteppedBack": "RolledBack"},
    "studio.core.names": {"shown": "escape_unprintable"},
    "studio.data.atlases.base": {
        "all_named": "siblings_with_suffix",
        "beginning": "read_start",
        "description": "read_description",
        "find_beside": "find_sibling",
        "last_part": "base_name",
        "means": "matches_path",
        "too_large": "exceeds_size_limit",
    },
    "studio.data.files.source_files": {"Picture": "SourceImage", "Refused": "UnreadableFile", "Remark": "SourceIssue"},
    "studio.data.sources.base": {"Picture": "SourceImage", "Refused": "UnreadableFile", "Remark": "SourceIssue"},
    "studio.engine.steps.batches": {"Chosen": "RawBatch", "at_most": "stride_subsample", "sampled": "subsample"},
    "studio.lab.experiments.base": {"Bench": "ExperimentContext"},
    "studio.recipes.base": {
        "Ability": "studio.recipes.capabilities.Capability",
        "EditCondition": "studio.recipes.capabilities.EditCondition",
        "Given": "studio.recipes.capabilities.EditCondition",
        "Student": "studio.recipes.capabilities.Student",
    },
    "studio.recipes.few_step": {"InStrides": "FewStepStudent", "path": "trajectory"},
}
# Methods and class attributes that a plug-in's subclass may define, by the module and name of their base.
MEMBERS: dict[str, dict[str, str]] = {
    "studio.lab.experiments.base.Experiment": {"misfit": "unsupported_reason", "told": "template_values"},
    "studio.recipes.base.Recipe": {"can": "capabilities", "knows_filling": "knows_inpainting", "path": "trajectory"},
    "studio.recipes.capabilities.Student": {"strides": "steps"},
}


def install() -> None:
    """Make `import` find modules under their former names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())


def attributes_of(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module: it finds the module's names under their former ones."""
    return partial(_attribute, module, module)


def alias(old: str, new: str) -> property:
    """Return a property that reads the attribute `new`; old: 'Class.name' as the warning shows it."""

    def read(instance: object) -> Any:
        _warn(old, new)
        return getattr(instance, new)

    return property(read)


def rename_members(kind: type) -> None:
    """In a plug-in class, store members with former names under their present ones; call it in `__init_subclass__`."""
    for base in kind.__mro__[1:]:
        for old, new in MEMBERS.get(f"{base.__module__}.{base.__qualname__}", {}).items():
            if old in vars(kind) and new not in vars(kind):
                _warn(f"{kind.__qualname__}.{old}", new)
                setattr(kind, new, vars(kind)[old])


class _Finder:
    """Finds and loads the modules of MODULES: empty modules that look up their attributes in the present ones.

    It has no base class: importlib.abc would import importlib.resources, which takes several milliseconds.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(fullname, self) if fullname in MODULES else None  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None  # Python makes an empty one

    def exec_module(self, module: ModuleType) -> None:
        _warn(module.__name__, MODULES[module.__name__])
        module.__dict__["__getattr__"] = partial(_attribute, MODULES[module.__name__], module.__name__)


def _attribute(module: str, asked: str, name: str) -> Any:
    """Return an attribute of `module` by its present or former name; `asked` is the module that was imported."""
    present = NAMES.get(module, {}).get(name, name)
    if present == name and asked == module:
        raise AttributeError(f"module {asked!r} has no attribute {name!r}")
    if present != name:
        _warn(f"{asked}.{name}", present)
    owner, _, last = present.rpartition(".")
    return getattr(importlib.import_module(owner or module), last)


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is now {new}; version {DROPPED_IN} drops the former name.", DeprecationWarning, stacklevel=3)
