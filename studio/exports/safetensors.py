"""Weights as .safetensors: safe to open anywhere, with everything about the model in its metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from studio.core.config import Config
from studio.core.errors import ExportError
from studio.core.files import write_atomic
from studio.exports.base import ExportableModel, ModelExport, fill

FORMAT_VERSION = 1
_LONGEST_HEADER = 16 << 20  # bytes; a header that claims more is not one that the studio wrote


class Safetensors(ModelExport[Config]):
    name = "safetensors"
    title = "safetensors"
    suffix = ".safetensors"
    order = 1
    opened_by = "PyTorch, JAX, Rust, JavaScript and others, with the library of that name"
    help = "Weights with settings and class names inside; safe to share and to open."

    def write(self, model: ExportableModel, target: Path, config: Config) -> list[Path]:
        write_atomic(target, in_order(save(model.weights(), metadata=metadata_of(model))))
        return [target]

    def read_back(self, paths: Sequence[Path], model: ExportableModel, config: Config) -> Tensor:
        weights, metadata = read(paths[0])
        if metadata != metadata_of(model):
            raise ExportError(
                f"{paths[0].name} says that it holds another model.", "Its metadata differ; export again."
            )
        return model.outputs(fill(model.fresh(), weights, paths[0]))

    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: Config) -> Mapping[str, str]:
        names = "target_names" if model.makes == "numbers" else "class_names"
        lines = (
            "import json\n"
            "from safetensors import safe_open\n\n"
            f'with safe_open("{paths[0].name}", framework="pt", device="cpu") as file:\n'
            f"    # recipe, config, size, {names}, architecture, step\n"
            "    about = file.metadata()\n"
            "    weights = {name: file.get_tensor(name) for name in file.keys()}\n"
            f'{names} = json.loads(about["{names}"])\n'
        )
        return {"Python": lines}


def metadata_of(model: ExportableModel) -> dict[str, str]:
    """What stands in the file's header. 'format' is what other libraries look for; the rest is the studio's."""
    return {"format": "pt", "format_version": str(FORMAT_VERSION), **model.about()}


def in_order(data: bytes) -> bytes:
    """The same file with its header sorted: the library writes it in any order, and one model is to be one file."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # the format aligns the numbers
    return len(header).to_bytes(8, "little") + header + data[end:]


def read(path: Path) -> tuple[dict[str, Tensor], Mapping[str, str]]:
    """The tensors and the metadata of a file, copied into memory. Raises ExportError when it is damaged."""
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        if len(data) < 8 or length > min(_LONGEST_HEADER, len(data) - 8):
            raise ExportError(f"{path.name} is damaged.", "Its header is cut short.")
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
        return load(data), metadata
    except (OSError, SafetensorError, ValueError, KeyError, AttributeError) as error:
        raise ExportError(f"{path.name} can't be read.", str(error)) from error
