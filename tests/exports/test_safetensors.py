"""What stands in a .safetensors file."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path

import pytest
from safetensors import safe_open

from studio.core.config import Config
from studio.core.errors import ExportError
from studio.engine import catalog
from studio.exports.safetensors import Safetensors, read
from tests.exports.tools import ANCESTOR, CELLS, CLASS_NAMES, small_exportable


def test_its_header_tells_all_about_the_model(tmp_path: Path) -> None:
    model = small_exportable("generator")
    Safetensors().write(model, tmp_path / "model.safetensors", Config())
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        about = file.metadata()
        assert set(file.keys()) == set(model.network.state_dict())
    assert about["format"] == "pt" and about["format_version"] == "1" and about["recipe"] == "generator"
    assert json.loads(about["class_names"]) == list(CLASS_NAMES)
    arguments = {"size": 8, "classes": 3, "width": 16, "colours": 32, "levels": 3}
    assert json.loads(about["architecture"]) == {"class": "UNet", "arguments": arguments}
    assert catalog.recipe("generator").Config.from_json(json.loads(about["config"])).to_json() == model.config
    assert about["size"] == "8" and about["step"] == "123" and about["started_from"] == "[]"


def test_the_header_of_a_set_model_names_its_cells(tmp_path: Path) -> None:
    Safetensors().write(small_exportable("sets"), tmp_path / "model.safetensors", Config())
    assert json.loads(read(tmp_path / "model.safetensors")[1]["cell_names"]) == list(CELLS)


def test_the_header_names_the_ancestors(tmp_path: Path) -> None:
    model = dataclasses.replace(small_exportable("generator"), ancestors=[ANCESTOR])
    Safetensors().write(model, tmp_path / "model.safetensors", Config())
    assert json.loads(read(tmp_path / "model.safetensors")[1]["started_from"]) == [ANCESTOR]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 8,
        struct.pack("<Q", 1 << 62) + b"{}",
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 4) + b"\xff\xfe\x00{",
        struct.pack("<Q", 64) + b'{"w":{"dtype":"F32","shape":[9999],"data_offsets":[0,39996]}}   ',
    ],
)
def test_a_false_header_length_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(data)
    with pytest.raises(ExportError):
        read(tmp_path / "model.safetensors")
