"""The source text of classes and functions, with the imports that they need, for a file that stands on its own."""

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

_ALLOWED = frozenset({"torch", *sys.stdlib_module_names})


def definitions(portable: Sequence[Any]) -> str:
    """The sources of classes and functions, in order; texts are taken as they are. Raises ExportError."""
    return "\n\n\n".join(_source(item).rstrip() for item in portable) + "\n"


def imports_for(portable: Sequence[Any], code: str) -> list[str]:
    """The import lines that `code` needs, sorted: from the modules that its parts were defined in.

    Raises ExportError when a name is defined nowhere, or comes from anything but torch and the standard library.
    """
    needed = _free_names(code)
    lines: dict[str, str] = {}
    for item in portable:
        module = None if isinstance(item, str) else sys.modules.get(item.__module__)
        for name, line in _module_imports(module).items() if module else ():
            if name in needed:
                lines.setdefault(name, line)
    missing = sorted(needed - set(lines))
    if missing:
        title = f"This model can't be saved with a loader: its code also needs {', '.join(missing)}."
        raise ExportError(title, "Add that to the recipe's `portable`, or export as safetensors.")
    return sorted(set(lines.values()), key=lambda line: (line.split()[1].startswith("torch"), line.split()[1], line))


def _source(item: Any) -> str:
    if isinstance(item, str):
        return item
    try:
        text = inspect.getsource(item)
    except (OSError, TypeError) as error:
        name = getattr(item, "__name__", repr(item))
        raise ExportError(f"The source of {name} is not at hand.", "Export as safetensors instead.") from error
    return re.sub(r"  # (type: ignore|noqa|fmt: skip)\b.*$", "", textwrap.dedent(text), flags=re.MULTILINE)


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
                if alias.name.partition(".")[0] in _ALLOWED:
                    found[alias.asname or alias.name.partition(".")[0]] = f"import {_spelt(alias)}"
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] in _ALLOWED:
            for alias in node.names:
                found[alias.asname or alias.name] = f"from {node.module} import {_spelt(alias)}"
    return found


def _spelt(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name
