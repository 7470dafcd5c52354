"""Write image files by hand for the tests, without the library that reads them."""

from __future__ import annotations

import contextlib
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from studio.core.events import Event
from studio.data.files.source_files import SourceFile
from studio.data.importing.importing import ImportOptions, SpritesImported, import_sprites
from studio.data.sheets.recognising import SheetCandidate, sheet_candidates

Pixels = NDArray[np.uint8]
MAGIC = b"\x89PNG\r\n\x1a\n"


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    width: int,
    height: int,
    depth: int,
    colour_type: int,
    rows: Sequence[bytes],
    *,
    palette: bytes = b"",
    transparency: bytes = b"",
    extra: bytes = b"",
) -> bytes:
    """A PNG file from rows of packed samples. Colour types: 0 grey, 2 RGB, 3 indexed, 4 grey and alpha, 6 RGBA."""
    parts = [MAGIC, chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour_type, 0, 0, 0)), extra]
    parts += [chunk(b"PLTE", palette)] if palette else []
    parts += [chunk(b"tRNS", transparency)] if transparency else []
    return b"".join([*parts, chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows))), chunk(b"IEND", b"")])


def png_of(rgba: Pixels) -> bytes:
    height, width = rgba.shape[:2]
    return png(width, height, 8, 6, [row.tobytes() for row in rgba])


def write(path: Path, rgba: Pixels) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(png_of(rgba))
    return path


def sprite(seed: int, width: int = 8, height: int = 0) -> Pixels:
    """Return opaque noise of few colours in a transparent border of one pixel; unique for a seed."""
    height = height or width
    rng = np.random.default_rng(seed)
    rgba = np.zeros((height, width, 4), np.uint8)
    rgba[1:-1, 1:-1, :3] = rng.integers(0, 6, (height - 2, width - 2, 3)) * 50
    rgba[1:-1, 1:-1, 3] = 255
    return rgba


def write_many(folder: Path, count: int, size: int = 8) -> Path:
    """Write 0.png, 1.png and so on, with `sprite(number)`."""
    for number in range(count):
        write(folder / f"{number}.png", sprite(number, size))
    return folder


def write_sheet(path: Path, rgba: Pixels, frames: Any) -> Path:
    """Write an image and its JSON description. frames: value of the key "frames"."""
    write(path, rgba)
    path.with_suffix(".json").write_text(json.dumps({"frames": frames, "meta": {"image": path.name}}))
    return path


def frame(name: str, x: int, y: int, w: int, h: int) -> dict[str, Any]:
    return {"filename": name, "frame": {"x": x, "y": y, "w": w, "h": h}}


def zipped(path: Path, members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    """Write a zip archive with the standard library."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as writer:
        for name, data in members.items():
            writer.writestr(name, data)
    return path


def all_sorts(root: Path) -> Path:
    """Write single sprites, a sheet, an archive, duplicates, other sizes and damaged files."""
    for number in range(40):
        write(root / f"class {number % 3}" / f"{number}.png", sprite(number % 35))
    write(root / "wide.png", sprite(50, 12, 6))
    write(root / "large.png", sprite(51, 300))
    (root / "bad.png").write_bytes(png_of(sprite(53))[:-30])
    soft = sprite(52)
    soft[3, 3, 3] = 100
    write(root / "soft.png", soft)
    rgba = np.concatenate([sprite(60), sprite(61)], axis=1)
    write_sheet(root / "sheet.png", rgba, [frame("a", 0, 0, 8, 8), frame("b", 8, 0, 8, 8)])
    zipped(root / "pack.zip", {f"more/{number}.png": png_of(sprite(number)) for number in range(30, 45)})
    return root


def found(path: Path) -> SourceFile:
    """Return a file as `walk_files` does."""
    siblings = frozenset(other.name for other in path.parent.iterdir() if other.is_file())
    about = path.stat()
    return SourceFile(str(path), path.name, (), path.parent.name, siblings, about.st_size, about.st_mtime_ns)


def events_of(*paths: Path, cache: Path | None = None, **options: Any) -> list[Event]:
    return list(import_sprites(paths, ImportOptions(**options), cache))


def imported(*paths: Path, cache: Path | None = None, **options: Any) -> SpritesImported:
    last = events_of(*paths, cache=cache, **options)[-1]
    assert isinstance(last, SpritesImported)
    return last


def everything(event: SpritesImported) -> tuple[Any, ...]:
    """Return the fields that are equal for two imports of the same files."""
    sprites = event.sprites
    about = (event.quarantine, event.notes, event.sheets, event.sizes, event.proposed_size)
    return (sprites.fingerprint, sprites.names, sprites.class_names, sprites.labels.tolist(), sprites.title, *about)


def reasons(event: SpritesImported, group: str = "") -> dict[str, str]:
    """Reason by name of what was left out."""
    return {item.name: item.reason for item in event.quarantine if group in ("", item.group)}


def notes(event: SpritesImported, group: str = "") -> dict[str, str]:
    """Reason by name of what was kept and noted."""
    return {item.name: item.reason for item in event.notes if group in ("", item.group)}


@contextlib.contextmanager
def sheets_recognised_once() -> Iterator[None]:
    """While it is entered, imports look for a sheet only once in equal pictures: that takes most of their time."""
    known: dict[bytes, tuple[SheetCandidate, ...]] = {}

    def once(rgba: Pixels) -> tuple[SheetCandidate, ...]:
        pixels = repr(rgba.shape).encode() + rgba.tobytes()
        if pixels not in known:
            known[pixels] = sheet_candidates(rgba)
        return known[pixels]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("studio.data.reading.read.sheet_candidates", once)
        yield
