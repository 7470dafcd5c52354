"""Collect the source code of classes and functions with everything they need, for a self-contained Python file."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import sys
import textwrap
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from studio.core.errors import ExportError

_TORCH_ALONE = frozenset({"torch"})
_HINT = "Export as safetensors instead."
_WIDTH = 120  # columns


@dataclass(frozen=True)
class CollectedSources:
    """Source code of classes and functions by name, dependencies first, with the import statements they need."""

    imports: list[str]
    sources: dict[str, str]

    @property
    def code(self) -> str:
        return "\n\n\n".join(self.sources.values()) + "\n"


def collect(
    items: Sequence[Any], known: Collection[str] = (), packages: Collection[str] = _TORCH_ALONE
) -> CollectedSources:
    """Collect the source code of classes and functions with their dependencies in the same package.

    Methods become functions without `self`. known: names defined elsewhere in the file. packages: allowed imports
    besides the standard library. Raises ExportError for names from other packages.
    """
    collector = _Collector(known, frozenset({*packages, *sys.stdlib_module_names}))
    for item in items:
        collector.add(item)
    if collector.missing:
        title = f"This model's code is not self-contained: it also needs {', '.join(sorted(collector.missing))}."
        raise ExportError(title, _HINT)
    return CollectedSources(sorted(set(collector.imports.values())), collector.sources)


class _Collector:
    """Collects source code with dependencies. missing: names from forbidden packages."""

    def __init__(self, known: Collection[str], packages: frozenset[str]) -> None:
        self.imports: dict[str, str] = {}
        self.sources: dict[str, str] = {}
        self.missing: set[str] = set()
        self._known, self._packages = {*known}, packages

    def add(self, item: Any) -> None:
        """Add a class's or function's source after the dependencies, unless known already."""
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


@functools.cache
def _source(item: Any) -> str:
    """Return the source of a class or function, without `self`, @staticmethod and comments for linters."""
    try:
        text = textwrap.dedent(inspect.getsource(item)).removeprefix("@staticmethod\n").rstrip()
    except (OSError, TypeError) as error:
        name = getattr(item, "__name__", repr(item))
        raise ExportError(f"The source code of {name} can't be found.", _HINT) from error
    text = re.sub(r"\A(def \w+\(\s*)self,\s*", r"\1", text)
    return re.sub(r"  # (type: ignore|noqa|fmt: skip)\b.*$", "", text, flags=re.MULTILINE)


@functools.cache
def free_names(code: str) -> frozenset[str]:
    """Return the names read but not defined in `code`, except built-ins. Ignores scopes."""
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
    return frozenset(read - bound)


@functools.cache
def first_paragraphs(code: str) -> str:
    """Cut every docstring in `code` to the first paragraph."""
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
    """Return the names defined at the top level of `code`."""
    found: set[str] = set()
    for node in ast.parse(code).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


@functools.cache
def _module_imports(module: ModuleType, packages: frozenset[str]) -> dict[str, str]:
    """Return a module's import statements from `packages`, by bound name."""
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


def format_imports(lines: Collection[str], needed: Collection[str] | None = None) -> str:
    """Merge and sort import statements: the standard library first, then other packages.

    needed: names used by the code; drops other imports. None keeps every import.
    """
    modules: set[str] = set()
    names: dict[str, set[str]] = defaultdict(set)  # by module
    for node in ast.parse("\n".join(lines)).body:
        assert isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names:
            if needed is None or (alias.asname or alias.name.partition(".")[0]) in needed:
                spelt = ast.unparse(alias)
                (names[str(node.module)] if isinstance(node, ast.ImportFrom) else modules).add(spelt)
    found = [f"import {name}" for name in modules]
    found += [f"from {module} import {', '.join(sorted(imported))}" for module, imported in names.items()]
    own = sorted((line for line in found if line.split()[1].partition(".")[0] in sys.stdlib_module_names), key=_rank)
    return "\n".join([*own, "", *sorted({*found} - {*own}, key=_rank)])


def _rank(line: str) -> tuple[bool, str]:
    return line.startswith("from"), line


def fill_in(code: str, values: Mapping[str, object], marks: str = "{}") -> str:
    """Replace each placeholder like '{NAME}' in `code` by its value. marks: the characters around a name."""
    for name, value in values.items():
        code = code.replace(f"{marks[0]}{name}{marks[1]}", str(value))
    return code


def docstring_safe(text: str) -> str:
    """Make a text safe inside a docstring: replace quotation marks, backslashes and all but printable ASCII."""
    return re.sub(r'[^ -~]|["\\]', "_", text)
