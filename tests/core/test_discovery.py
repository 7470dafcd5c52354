from __future__ import annotations

import sys
import types
from abc import ABC, abstractmethod
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from studio.core import discovery
from studio.core.discovery import discover, find_plugin
from studio.core.errors import StudioError, UsageError


class Animal(ABC):
    name = ""
    order = 0

    @abstractmethod
    def sound(self) -> str: ...


PLUGIN = """
from tests.core.test_discovery import Animal
class {kind}(Animal):
    name = "{name}"
    def sound(self):
        return "{name}!"
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    folder = tmp_path / "zoo"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "cat.py").write_text(PLUGIN.format(kind="Cat", name="cat"))
    (folder / "ant.py").write_text(PLUGIN.format(kind="Ant", name="ant") + "from .cat import Cat\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "zoo"]:
        monkeypatch.delitem(sys.modules, name)
    return __import__("zoo")


def test_every_module_is_searched_and_every_plugin_found_once(package: types.ModuleType) -> None:
    found = discover(package, Animal)  # type: ignore[type-abstract]
    assert list(found) == ["ant", "cat"] and found["cat"].sound() == "cat!"


def test_plugins_of_other_packages_are_found_by_entry_point(
    package: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "third_party_dog.py").write_text(PLUGIN.format(kind="Dog", name="dog"))
    entry = EntryPoint("dog", "third_party_dog", "zoo")
    monkeypatch.setattr(discovery, "entry_points", lambda group: [entry] if group == "zoo" else [])
    assert list(discover(package, Animal)) == ["ant", "cat", "dog"]  # type: ignore[type-abstract]


def test_duplicate_plugin_name_is_an_error(package: types.ModuleType) -> None:
    (Path(str(package.__file__)).parent / "tiger.py").write_text(PLUGIN.format(kind="Tiger", name="cat"))
    with pytest.raises(StudioError, match="'cat'"):
        discover(package, Animal)  # type: ignore[type-abstract]


def test_unknown_plugin_name_lists_known_names(package: types.ModuleType) -> None:
    with pytest.raises(UsageError, match="ant, cat"):
        find_plugin(discover(package, Animal), "cow", "animal")  # type: ignore[type-abstract]
