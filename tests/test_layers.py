"""The layers hold: imports point down, Qt stays in the window, torch arrives late, and nobody reads pickle."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import socket
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BATS = ROOT / "assets/demo/demo sprites/bats.png"

MAY_IMPORT = {
    "core": {"core"},
    "data": {"core", "data"},
    "recipes": {"core", "recipes", "data.sprites"},
    "exports": {"core", "exports", "data.sprites", "data.tiles"},
    "installing": {"installing"},
    "engine": {"core", "data", "recipes", "exports", "installing", "engine"},
    "lab": {"core", "data", "recipes", "exports", "engine", "lab"},
    "app": {"core", "data", "recipes", "exports", "installing", "engine", "lab", "app"},
    "cli": {"core", "data", "recipes", "exports", "installing", "engine", "lab", "cli"},
    "__main__": {"cli"},
    "": {"core.former_names"},
}
# How the command line gets into the window: inside a function, and it imports no Qt when it is imported.
WAYS_INTO_THE_WINDOW = {"app", "app.launch"}
QT = {"PySide6", "shiboken6", "pyqtgraph", "PyQt5", "PyQt6"}
PICKLES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}
# What the studio's own processes say to each other through pipes is never on the disk.
MAY_PICKLE = {"studio.core.worker_process"}
NOT_ON_WINDOWS = {"resource", "fcntl", "pwd", "grp", "termios", "tty", "pty", "syslog", "posix", "curses", "readline"}
PLUGIN_BASES = {
    "recipes": "Recipe",
    "exports": "ModelExport",
    "exports.sprites": "SpriteExport",
    "lab.experiments": "Experiment",
    "lab.lessons": "Lesson",
    "data.sources": "Source",
    "data.palettes": "PaletteFormat",
    "data.atlases": "AtlasFormat",
}


@dataclass(frozen=True)
class Import:
    """One name that a module imports. `late`: inside a function. `typing`: for type checkers alone."""

    name: str
    late: bool
    typing: bool


def imports_of(source: str, known: Mapping[str, str] | None = None) -> Iterator[Import]:
    """Every import in a module: 'from a import b' is 'a.b' where that is a known module, else 'a'."""
    for base, name, late, typing in _found_in(source):
        inner = f"{base}.{name}"
        yield Import(inner if known and inner in known else base, late, typing)


@functools.cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


@functools.cache
def _found_in(source: str) -> list[tuple[str, str, bool, bool]]:
    """Each import's module, the name taken from it or '', and what `Import` says of it."""
    return list(_walk(_parsed(source).body, late=False, typing=False))


def _walk(statements: Iterable[ast.AST], *, late: bool, typing: bool) -> Iterator[tuple[str, str, bool, bool]]:
    for node in statements:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "", late, typing) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (("." * node.level + (node.module or ""), alias.name, late, typing) for alias in node.names)
        else:
            inside = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for_checkers = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            for part in ("body", "handlers", "cases", "orelse", "finalbody"):
                if inner := getattr(node, part, ()):
                    yield from _walk(inner, late=inside, typing=typing or (for_checkers and part == "body"))


def breaches(modules: Mapping[str, str]) -> list[str]:
    """A sentence for every import that breaks a layer. `modules`: source text by dotted name."""
    plugins = plugin_modules(modules)
    found = []
    for module, source in modules.items():
        for item in imports_of(source, modules):
            found += [f"{module} {problem}" for problem in _problems(module, item, plugins)]
    return sorted(set(found))


def road_to_torch(starts: Collection[str], modules: Mapping[str, str]) -> list[str]:
    """The modules through which importing one of `starts` imports torch, 'torch' the last; empty when none does."""
    roads, seen = [[start] for start in starts], set(starts)
    while roads:
        road = roads.pop(0)
        for item in imports_of(modules[road[-1]], modules):
            if item.late or item.typing:
                continue
            parts = item.name.split(".")
            if parts[0] == "torch":
                return [*road, "torch"]
            # 'import a.b.c' runs the packages a and a.b as well.
            for name in (".".join(parts[:count]) for count in range(1, len(parts) + 1)):
                if name in modules and name not in seen:
                    seen.add(name)
                    roads.append([*road, name])
    return []


def circles(modules: Mapping[str, str]) -> list[set[str]]:
    """The parts of a package (modules and packages) that import each other in a circle, for every package.

    Imports inside functions and for type checkers count as well.
    """
    found = []
    imported = {module: {item.name for item in imports_of(source, modules)} for module, source in modules.items()}
    for package in {module.rpartition(".")[0] for module in modules} - {""}:
        graph: dict[str, set[str]] = {}
        for module, names in imported.items():
            if part := _part_of(package, module):
                graph.setdefault(part, set()).update({_part_of(package, name) for name in names} - {"", part})
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as error:
            found.append(set(error.args[1]))
    return found


def _part_of(package: str, module: str) -> str:
    """The module or package directly in `package` that holds `module`; empty when it is not in there."""
    inner = module.removeprefix(f"{package}.")
    return "" if inner == module else f"{package}.{inner.partition('.')[0]}"


def plugin_modules(modules: Mapping[str, str]) -> set[str]:
    """The modules that define a concrete plug-in."""
    found = set()
    for module, source in modules.items():
        base = PLUGIN_BASES.get(module.removeprefix("studio.").rpartition(".")[0])
        for node in _parsed(source).body if base else ():
            if not isinstance(node, ast.ClassDef) or _is_abstract(node):
                continue
            if base in {ast.unparse(kind).partition("[")[0] for kind in node.bases}:
                found.add(module)
    return found


def _is_abstract(node: ast.ClassDef) -> bool:
    """Return whether a method of the class is decorated as abstract."""
    decorators = (decorator for part in node.body for decorator in getattr(part, "decorator_list", ()))
    return any(ast.unparse(decorator) == "abstractmethod" for decorator in decorators)


def _problems(module: str, item: Import, plugins: set[str]) -> Iterator[str]:
    layer = module.removeprefix("studio").removeprefix(".").partition(".")[0]
    outer = item.name.partition(".")[0]
    if item.name.startswith("."):
        yield "imports by a relative name"
    if outer in PICKLES and module not in MAY_PICKLE:
        yield f"imports {outer}: nothing that is read back may be pickle"
    if outer in QT and layer != "app":
        yield f"imports {outer}: only the window may"
    if layer == "installing" and outer not in {"studio", "__future__", *sys.stdlib_module_names}:
        yield f"imports {outer}: the launcher has the standard library alone"
    if outer == "torch" and layer in {"core", "data"}:
        yield "imports torch: core and data never do"
    if outer == "torch" and layer == "app" and not (item.late or item.typing):
        yield "imports torch when it is imported: the first paint would wait for it"
    target = item.name.removeprefix("studio").removeprefix(".")
    allowed = any(f"{target}.".startswith(f"{name}.") for name in MAY_IMPORT.get(layer, set()))
    into_window = layer == "cli" and item.late and target in WAYS_INTO_THE_WINDOW
    if outer == "studio" and target and not allowed and not into_window:
        yield f"imports {item.name}: imports point down"
    if item.name in plugins - {module}:
        yield f"imports {item.name}: nobody names a concrete plug-in"


@functools.cache
def sources(package: str = "studio") -> dict[str, str]:
    """Every module of the studio, or of the tests."""
    found = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


def test_the_layers_hold() -> None:
    modules = sources()
    assert len(modules) > 50 and {"studio.recipes.generator", "studio.exports.sprites.gif"} <= plugin_modules(modules)
    assert breaches(modules) == []


@pytest.mark.parametrize("package", ["studio", pytest.param("tests", marks=pytest.mark.slow)])
def test_every_module_can_be_imported_on_windows(package: str) -> None:
    """What a platform lacks is imported where it is needed: a test that needs it is collected, and skipped there."""
    found = [
        f"{module} imports {item.name}"
        for module, source in sources(package).items()
        for item in imports_of(source)
        if item.name.partition(".")[0] in NOT_ON_WINDOWS and not item.late
    ]
    assert found == []


@pytest.mark.parametrize(
    ("module", "source", "problem"),
    [
        ("studio.core.thing", "import torch", "torch"),
        ("studio.data.thing", "def f():\n    import torch.nn", "torch"),
        ("studio.data.thing", "from studio.recipes.base import Recipe", "imports point down"),
        ("studio.engine.thing", "from PySide6.QtCore import QObject", "only the window"),
        ("studio.engine.thing", "def f():\n    from studio.app import jobs", "imports point down"),
        ("studio.engine.thing", "from studio.cli.messages import notice", "imports point down"),
        ("studio.exports.thing", "from studio.engine.models.model import TrainedModel", "imports point down"),
        ("studio.recipes.thing", "from studio.data import importing", "imports point down"),
        ("studio.installing.thing", "def f():\n    import platformdirs", "standard library"),
        ("studio.installing.thing", "from studio.core import files", "imports point down"),
        ("studio.app.thing", "import torch", "first paint"),
        ("studio.app.thing", "if True:\n    from torch import nn", "first paint"),
        ("studio.cli.thing", "from studio.app import launch", "imports point down"),
        ("studio.cli.thing", "def f():\n    from studio.app import session", "imports point down"),
        ("studio.cli.thing", "import pyqtgraph as pg", "only the window"),
        ("studio.engine.thing", "from pickle import loads", "pickle"),
        ("studio.recipes.thing", "from studio.recipes.other import Other", "concrete plug-in"),
        ("studio.engine.thing", "from studio.recipes import other", "concrete plug-in"),
        ("studio.engine.thing", "from . import model", "relative"),
    ],
)
def test_a_breach_is_found(module: str, source: str, problem: str) -> None:
    others = {
        "studio.data.importing.importing": "",
        "studio.app.launch": "",
        "studio.app.session": "",
        "studio.app.jobs": "",
        "studio.recipes.other": "class Other(Recipe): pass",
    }
    assert [text for text in breaches({**others, module: source}) if problem in text]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("studio.app.thing", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from torch import nn"),
        ("studio.app.thing", "def f():\n    import torch"),
        ("studio.cli.thing", "def f():\n    from studio.app import launch"),
        ("studio.recipes.thing", "from studio.data.sprites import Sprites\nfrom studio.recipes.layers import Block"),
        ("studio.engine.thing", "import torch\nfrom studio.core import files"),
    ],
)
def test_what_is_allowed_is_not_a_breach(module: str, source: str) -> None:
    assert breaches({"studio.app.launch": "", "studio.recipes.layers": "class Block: pass", module: source}) == []


@pytest.mark.parametrize("layer", ["core", "data", "exports.sprites", "app", "cli", "__main__"])
def test_torch_arrives_late_by_every_road(layer: str) -> None:
    modules = sources()
    starts = [name for name in modules if f"{name}.".startswith(f"studio.{layer}.")]
    assert starts
    assert road_to_torch(starts, modules) == []


def test_a_long_road_to_torch_is_found() -> None:
    modules = {
        "studio.app.page": "from studio.engine.fast import run",
        "studio.app.late": "def f():\n    from studio.engine.fast import run",
        "studio.engine": "",
        "studio.engine.fast": "from studio.engine.heavy.parts import run",
        "studio.engine.heavy": "import torch.nn",
        "studio.engine.heavy.parts": "import math",
    }
    expected = ["studio.app.page", "studio.engine.fast", "studio.engine.heavy", "torch"]
    assert road_to_torch(["studio.app.late", "studio.app.page"], modules) == expected
    assert road_to_torch(["studio.app.late"], modules) == []


def test_plug_ins_can_be_imported_without_the_extras() -> None:
    """Discovery imports every module beside the plug-ins: an installed studio has no ONNX, TensorBoard or wasmtime."""
    extras = {"onnx", "onnxruntime", "onnxscript", "tensorboard", "wasmtime"}
    found = [
        f"{module} imports {item.name}"
        for module, source in sources().items()
        for item in imports_of(source)
        if module.removeprefix("studio.").rpartition(".")[0] in PLUGIN_BASES
        if item.name.partition(".")[0] in extras and not item.late and not item.typing
    ]
    assert found == []


def test_no_rooms_and_no_modules_import_each_other_in_a_circle() -> None:
    assert circles(sources()) == []


@pytest.mark.parametrize(
    "last",
    ["import a.two.inner", "def f():\n    from a.two import inner", "if TYPE_CHECKING:\n    from a.two.inner import b"],
)
def test_a_circle_is_found(last: str) -> None:
    modules = {
        "a": "from a import one",
        "a.one": "import a.three.deep",
        "a.two": "from a.one import b",
        "a.two.inner": "",
        "a.three": "",
        "a.three.deep": "import math",
    }
    assert circles(modules) == []
    assert circles({**modules, "a.three.deep": last}) == [{"a.one", "a.two", "a.three"}]


def _said_by(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_leaves_torch_and_qt_alone() -> None:
    bats = str(BATS)
    commands = [["--help"], ["runs"], ["inspect", bats], ["inspect", "--help"], ["palette", bats, "--extract"]]
    assert _said_by(
        "import sys\nfrom studio.cli import main\n"
        f"for words in {[*commands, ['export', '--help']]!r}:\n"
        "    assert main(words) == 0, words\n"
        "    loaded = {'torch', 'PySide6', 'pyqtgraph', 'matplotlib'} & set(sys.modules)\n"
        "    assert not loaded, (words, loaded)"
    )


def test_tests_mirror_the_packages() -> None:
    beside = {"bench", "campaigns", "contract", "fuzz", "machines", "older_run", "plugin_package"}
    folders = {path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")}
    mirrored = [folder for folder in folders if folder.parts and folder.parts[0] not in beside]
    assert len(mirrored) > 30 and all((ROOT / "studio" / folder / "__init__.py").is_file() for folder in mirrored)


def test_every_package_says_where_to_begin() -> None:
    for init in (ROOT / "studio").rglob("__init__.py"):
        said = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8"))) or ""
        named = re.findall(r"\b(\w[\w/]*\.py)\b", said)
        assert said and all((init.parent / name).is_file() for name in named), init


def test_fault_30_tests_have_no_network() -> None:
    with socket.socket() as asking, pytest.raises(OSError, match="unreachable"):
        asking.connect(("127.0.0.1", 9))
    with pytest.raises(OSError, match="unreachable"):
        socket.create_connection(("example.org", 80), timeout=1)
