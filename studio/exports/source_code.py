"""The source text of classes and functions, with all that they need, for a file that stands on its own."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from studio.core.errors import ExportError

_TORCH_ALONE = frozenset({"torch"})
_HINT = "Export as safetensors instead."
_WIDTH = 120  # of a line


@dataclass(frozen=True)
class CollectedSources:
    """Sources by their names, in the order in which they are to stand, and the imports that they need."""

    imports: list[str]
    sources: dict[str, str]

    @property
    def code(self) -> str:
        return "\n\n\n".join(self.sources.values()) + "\n"


def collect(
    items: Sequence[Any], known: Collection[str] = (), packages: Collection[str] = _TORCH_ALONE
) -> CollectedSources:
    """The sources of classes and functions, each after those of its own package that it needs.

    A method of a stateless object becomes a function without `self`. known: names that the file has by other means.
    packages: what may be imported, besides the standard library. Raises ExportError for a name from anywhere else.
    """
    gathering = _Collector(known, frozenset({*packages, *sys.stdlib_module_names}))
    for item in items:
        gathering.add(item)
    if gathering.missing:
        title = f"This model's code can't stand on its own: it also needs {', '.join(sorted(gathering.missing))}."
        raise ExportError(title, _HINT)
    lines = sorted(
        set(gathering.imports.values()), key=lambda line: (line.split()[1].startswith("torch"), line.split()[1], line)
    )
    return CollectedSources(lines, gathering.sources)


def standalone(items: Sequence[Any]) -> tuple[list[str], str]:
    """Import lines and code of classes and functions that need torch and the standard library alone: see `collect`."""
    found = collect(items)
    return found.imports, found.code


class _Collector:
    """What was found on the way: imports by the name that they bind, sources by theirs, and names of foreign things."""

    def __init__(self, known: Collection[str], packages: frozenset[str]) -> None:
        self.imports: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        self.missing: set[str] = set()
        self._known, self._packages = {*known}, packages

    def add(self, item: Any) -> None:
        """The source of a class or function, after all that it needs; nothing where it is there already."""
        if item.__name__ in self._known:
            return
        self._known.add(item.__name__)
        source, module = _source(item), sys.modules[item.__module__]
        importable = _module_imports(module, self._packages)
        for name in sorted(free_names(source) - self._known):
            value = getattr(module, name, None)
            if name in importable:
                self.imports[name] = importable[name]
            elif isinstance(value, int | float | str | tuple):
                self._known.add(name)
                self.sources[name] = f"{name} = {value!r}"
            elif getattr(value, "__name__", "") == name and _package(value) in {_package(item), "studio"}:
                self.add(value)
            else:
                self.missing.add(name)
        self.sources[item.__name__] = source


def _package(item: Any) -> str:
    return str(getattr(item, "__module__", "")).partition(".")[0]


def _source(item: Any) -> str:
    """Without what makes it a method, and without what is said to linters."""
    try:
        text = textwrap.dedent(inspect.getsource(item)).removeprefix("@staticmethod\n").rstrip()
    except (OSError, TypeError) as error:
        name = getattr(item, "__name__", repr(item))
        raise ExportError(f"The source of {name} is not at hand.", _HINT) from error
    text = re.sub(r"\A(def \w+\(\s*)self,\s*", r"\1", text)
    return re.sub(r"  # (type: ignore|noqa|fmt: skip)\b.*$", "", text, flags=re.MULTILINE)


def free_names(code: str) -> set[str]:
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


def first_paragraphs(code: str) -> str:
    """`code`, of each docstring the first paragraph alone."""
    lines: list[str | None] = [*code.splitlines()]
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node):
            text = node.body[0]
            first, last = text.lineno - 1, text.end_lineno or 0
            end = next((number for number in range(first, last) if not lines[number]), last)
            if end < last:
                lines[end:last] = [" " * text.col_offset + '"""', *[None] * (last - end - 1)]
                if end == first + 1 and len(lines[first] or "") <= _WIDTH - 3:
                    lines[first], lines[end] = f'{lines[first]}"""', None
    return "\n".join(line for line in lines if line is not None)


def defined_names(code: str) -> set[str]:
    """Names that `code` defines at its top level."""
    found: set[str] = set()
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


@functools.cache
def _module_imports(module: ModuleType, packages: frozenset[str]) -> dict[str, str]:
    """What a module imports from these packages: the line that binds each name."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in packages:
                    found[alias.asname or alias.name.partition(".")[0]] = f"import {_import_name(alias)}"
        elif isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] in packages:
            for alias in node.names:
                found[alias.asname or alias.name] = f"from {node.module} import {_import_name(alias)}"
    return found


def _import_name(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name
