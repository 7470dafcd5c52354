"""The package of plug-ins outside the studio: it is found, installs as it is found here, and is what README shows."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path

import pytest

from studio.data.reading.read import all_sources
from studio.engine import catalog
from studio.exports.sprites.formats import sprite_exports
from studio.lab.catalog import experiments
from tests.environment import PLUGINS

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_its_plugins_are_found_after_the_built_in_ones() -> None:
    assert list(catalog.recipes()) == ["generator", "classifier", "regression", "autoencoder", "vae"]
    assert list(catalog.model_exports()) == ["safetensors", "state_dict", "onnx", "pt2", "c", "script", "web", "npz"]
    assert list(sprite_exports()) == ["sheet", "indexed_sheet", "aseprite", "godot", "gif", "apng", "npy"]
    assert list(experiments())[-1] == "kernels"
    assert "npy" in {source.name for source in all_sources()}


def test_it_installs_as_the_tests_find_it() -> None:
    installed = configparser.ConfigParser()
    installed.read(PLUGINS / "toy_plugins-1.0.dist-info" / "entry_points.txt")
    project = tomllib.loads((PLUGINS / "pyproject.toml").read_text())["project"]
    assert project["entry-points"] == {group: dict(installed[group]) for group in installed.sections()}


@pytest.mark.parametrize(("language", "file"), [("python", "toy_plugins/vae.py"), ("toml", "pyproject.toml")])
def test_readme_shows_its_code(language: str, file: str) -> None:
    """All that README shows is there, in that order, however its lines are broken; '...' is what README leaves out."""
    (shown,) = re.findall(rf"```{language}\n(.*?)```", README.partition("## Adding a recipe")[2], re.DOTALL)
    rest = re.sub(r"\s", "", (PLUGINS / file).read_text(encoding="utf-8"))
    for part in filter(None, re.sub(r"\s", "", shown).split("...")):
        _, found, rest = rest.partition(part)
        assert found == part
