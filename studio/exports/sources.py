"""The source text of classes and functions, with all that they need, for a file that stands on its own."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import sys
import textwrap
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from studio.core.errors import ExportError

_IMPORTED = frozenset({"torch", *sys.stdlib_module_names})
_HINT = "Export as safetensors instead."


def standalone(items: Sequence[Any]) -> tuple[list[str], str]:
    """Import lines, and the sources of classes and functions, each after those of its own package that it needs.

    Raises ExportError for a name that comes from anything but torch, the standard library and their own packages.
    """
    imports: dict[str, str] = {}
    sources: dict[str, str] = {}
    missing: set[str] = set()
    for item in items:
        _gather(item, imports, sources, missing)
    if missing:
        title = f"This model can't be saved with a loader: its code also needs {', '.join(sorted(missing))}."
        raise ExportError(title, _HINT)
    lines = sorted(set(imports.values()), key=lambda line: (line.split()[1].startswith("torch"), line.split()[1], line))
    return lines, "\n\n\n".join(source for source in sources.values()) + "\n"


def _gather(item: Any, imports: dict[str, str], sources: dict[str, str], missing: set[str]) -> None:
    """Add the source of a class or function to `sources` by its name, after all that it needs."""
    source, module = _source(item), sys.modules[item.__module__]
    importable = _module_imports(module)
    for name in sorted(_free_names(source) - {item.__name__} - sources.keys()):
        value = getattr(module, name, None)
        if name in importable:
            imports[name] = importable[name]
        elif isinstance(value, int | float | str | tuple):
            sources[name] = f"{name} = {value!r}"
        elif getattr(value, "__name__", "") == name and _package(value) in {_package(item), "studio"}:
            _gather(value, imports, sources, missing)
        else:
            missing.add(name)
    sources[item.__name__] = source


def _package(item: Any) -> str:
    return str(getattr(item, "__module__", "")).partition(".")[0]


def _source(item: Any) -> str:
    """Without the decorator of a static method, and without what is said to linters."""
    try:
        text = textwrap.dedent(inspect.getsource(item)).removeprefix("@staticmethod\n").rstrip()
    except (OSError, TypeError) as error:
        name = getattr(item, "__name__", repr(item))
        raise ExportError(f"The source of {name} is not at hand.", _HINT) from error
    return re.sub(r"  # (type: ignore|noqa|fmt: skip)\b.*$", "", text, flags=re.MULTILINE)


def _free_names(code: str) -> set[str]:
    """Names that `code` reads and that neither it nor Python defines. Scopes are not told apart."""
    read: set[str] = set()
    bound: set[str] = set(dir(builtins)) | {"__name__", "__file__"}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return read - bound


def _module_imports(module: ModuleType) -> dict[str, str]:
    """What a module imports from torch and the standard library: the line that binds each name."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in _IMPORTED:
                    found[alias.asname or alias.name.partition(".")[0]] = f"import {_spelt(alias)}"
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] in _IMPORTED:
            for alias in node.names:
                found[alias.asname or alias.name] = f"from {node.module} import {_spelt(alias)}"
    return found


def _spelt(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name
