"""The package of plug-ins outside the studio: it installs as the tests find it, and the guide shows its code."""

from __future__ import annotations

import configparser
import re
import tomllib

import pytest

from studio.core import guide
from studio.data.reading.read import all_sources
from studio.engine import catalog
from studio.exports.sprites.formats import sprite_exports
from studio.lab.catalog import experiments
from tests.environment import PLUGINS


def test_its_plugins_are_found_after_the_built_in_ones() -> None:
    found = (catalog.recipes(), catalog.model_exports(), sprite_exports(), experiments())
    assert [list(plugins)[-1] for plugins in found] == ["vae", "npz", "npy", "kernels"]
    assert [next(iter(plugins)) for plugins in found[:3]] == ["generator", "safetensors", "sheet"]  # the default ones
    assert "npy" in {source.name for source in all_sources()}


def test_it_installs_as_the_tests_find_it() -> None:
    installed = configparser.ConfigParser()
    installed.read(PLUGINS / "toy_plugins-1.0.dist-info" / "entry_points.txt")
    project = tomllib.loads((PLUGINS / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == {group: dict(installed[group]) for group in installed.sections()}


@pytest.mark.parametrize(("language", "file"), [("python", "toy_plugins/vae.py"), ("toml", "pyproject.toml")])
def test_the_guide_shows_its_code(language: str, file: str) -> None:
    """The code of the guide is in the package, in this order, with other line breaks; '...' stands for omitted code."""
    (shown,) = re.findall(rf"```{language}\n(.*?)```", guide.topic_text("plug-ins"), re.DOTALL)
    rest = re.sub(r"\s", "", (PLUGINS / file).read_text(encoding="utf-8"))
    for part in filter(None, re.sub(r"\s", "", shown).split("...")):
        _, found, rest = rest.partition(part)
        assert found == part
