"""Export weights as .safetensors, with a description of the model in the metadata."""

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
from studio.exports.base import ALL, ExportableModel, ModelExport, fill

FORMAT_VERSION = 1
_LONGEST_HEADER = 16 << 20  # bytes; the studio never writes a longer header


class Safetensors(ModelExport[Config]):
    name = "safetensors"
    title = "safetensors"
    suffix = ".safetensors"
    order = 1
    opened_by = "PyTorch, JAX, Rust, JavaScript and others, with the safetensors library"
    help = "Weights with settings and class names, safe to share and to open."
    holds = ALL
    takes_attributes = True

    def write(self, model: ExportableModel, target: Path, config: Config) -> list[Path]:
        write_atomic(target, sort_header(save(model.weights(), metadata=metadata_of(model))))
        return [target]

    def read_back(self, paths: Sequence[Path], model: ExportableModel, config: Config) -> Tensor:
        weights, metadata = read(paths[0])
        if metadata != metadata_of(model):
            raise ExportError(f"{paths[0].name} contains another model.", "Its metadata differ. Export again.")
        return model.outputs(fill(model.fresh(), weights, paths[0]))

    def snippets(self, paths: Sequence[Path], model: ExportableModel, config: Config) -> Mapping[str, str]:
        names = {"numbers": "target_names", "sets": "cell_names"}.get(model.makes, "class_names")
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
    """Return the metadata in the file's header. Other libraries read 'format'; the rest is for the studio."""
    return {"format": "pt", "format_version": str(FORMAT_VERSION), **model.about()}


def sort_header(data: bytes) -> bytes:
    """Sort the header of a file. The library writes it in random order, but equal models should give equal files."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)  # align the tensors to 8 bytes
    return len(header).to_bytes(8, "little") + header + data[end:]


def read(path: Path) -> tuple[dict[str, Tensor], Mapping[str, str]]:
    """Read tensors and metadata of a file. Raises ExportError if it is damaged or can't be read."""
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        if len(data) < 8 or length > min(_LONGEST_HEADER, len(data) - 8):
            raise ExportError(f"{path.name} is damaged.", "Its header is incomplete.")
        metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
        return load(data), metadata
    except (OSError, SafetensorError, ValueError, KeyError, AttributeError) as error:
        raise ExportError(f"{path.name} can't be read.", str(error)) from error
