"""A small valid file of every input format, with its reader and the checks that hold for damaged files too."""

from __future__ import annotations

import functools
import io
import json
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image

from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.core.names import escape_unprintable
from studio.data.atlases.base import AtlasFormat
from studio.data.atlases.formats import atlas_formats
from studio.data.colour.palette import Palette
from studio.data.files.source_files import ImportIssue, SourceFile, SourceIssue
from studio.data.import_result import NOTE_GROUPS, QUARANTINE_GROUPS
from studio.data.options import ImportOptions
from studio.data.palettes.base import PaletteFormat
from studio.data.palettes.files import load_palette, palette_formats
from studio.data.reading.finding import resolve_roots, walk_files
from studio.data.reading.read import all_sources, read_all
from studio.data.sources.base import Source
from tests.data import ase_making as ase
from tests.data.animating import ANIMATIONS, Drawn, apng, gif, noise, numbers
from tests.data.atlases import test_godot_tiles, test_ldtk, test_texture_atlas, test_tiled
from tests.data.making import MAGIC, frame, imported, png, png_of, sprite, zipped
from tests.fuzz.mutating import mutated, with_right_checksums


def read_pictures(folder: Path) -> bool:
    """Return whether the source yields an image; fails for anything but images and plain reasons."""
    listed, came = list(walk_files(*resolve_roots([folder]))), False
    _check(item for item in listed if isinstance(item, ImportIssue))
    for reading in read_all([item for item in listed if isinstance(item, SourceFile)], all_sources(), ImportOptions()):
        for sprite_read in reading.sprites:
            rgba = sprite_read.rgba
            assert rgba is None or (rgba.dtype == np.uint8 and rgba.ndim == 3 and rgba.shape[2] == 4 and rgba.size)
            assert escape_unprintable(sprite_read.part) == sprite_read.part
        _check([*reading.left_out, *reading.remarks])
        came |= bool(reading.sprites)
    return came


def read_palette(folder: Path) -> bool:
    (path,) = folder.iterdir()
    try:
        return len(load_palette(path)) > 0
    except BadInputError as error:
        fault = error
    assert path.name in fault.title and fault.title.endswith(".") and fault.hint
    check_text(fault.title)
    return False


def read_labels(folder: Path) -> bool:
    """Return whether the import uses the table without issues; it must import the sprites in any case."""
    last = imported(folder)
    assert len(last.sprites) == 2
    _check([*last.quarantine, *last.notes])
    return not last.quarantine and not last.notes


def import_all(folder: Path) -> bool:
    try:
        last = imported(folder)
    except BadInputError as error:
        check_text(error.title)
        return False
    _check([*last.quarantine, *last.notes])
    return len(last.sprites) > 0


def _check(items: Iterable[ImportIssue | SourceIssue]) -> None:
    for item in items:
        assert item.group in (*QUARANTINE_GROUPS, *NOTE_GROUPS), item.group
        check_text(item.reason)


def check_text(text: str) -> None:
    assert text and escape_unprintable(text) == text and "Error" not in text, text


@dataclass(frozen=True)
class Specimen:
    """A valid input. files: contents by file name in one folder. target: name of the file to mutate.

    spare: bytes at the end of the target that hold no pixels; None if a truncated file may give some sprites.
    """

    files: dict[str, bytes]
    target: str
    spare: int | None = None
    read: Callable[[Path], bool] = read_pictures

    def write(self, folder: Path) -> None:
        for name, data in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)


def by_pillow(kind: str, mode: str, suffix: str, **options: object) -> Specimen:
    stream = io.BytesIO()
    Image.fromarray(noise(0, 20, 16)).convert(mode).save(stream, kind, **options)
    # A footer, a closing mark: all pixels are there without it.
    spare = {"TGA": 26, "QOI": 8}.get(kind, 2)
    return Specimen({f"art{suffix}": stream.getvalue()}, f"art{suffix}", spare)


def _alone(name: str, data: bytes, spare: int | None = None) -> Specimen:
    return Specimen({name: data}, name, spare)


def _interlaced() -> Specimen:
    """Every pass of a picture of 8 x 8 pixels, by its width and height."""
    passes = ((1, 1), (1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4))
    rows = [bytes(range(4 * width)) for width, height in passes for _ in range(height)]
    data = bytearray(png(8, 8, 8, 6, rows))
    data[28] = 1  # the header's word for it
    return _alone("art.png", with_right_checksums(bytes(data)), spare=0)


def _palette_png() -> Specimen:
    rows = [row.tobytes() for row in numbers(0, 16, 12)]
    return _alone("art.png", png(16, 12, 8, 3, rows, palette=bytes(range(12)), transparency=b"\x00\x80\xff"), spare=0)


def _sixteen_bits() -> Specimen:
    rows = [np.random.default_rng(row).bytes(8 * 6) for row in range(8)]
    return _alone("art.png", png(8, 8, 16, 2, rows, transparency=b"\0\1\0\2\0\3"), spare=0)


def _gif(count: int) -> Specimen:
    frames = [Drawn(numbers(seed, 12, 10), seed, 0, disposal=seed % 4, clear=seed % 4) for seed in range(count)]
    return _alone("art.gif", gif(16, 12, frames))


def _apng() -> Specimen:
    frames = [Drawn(noise(seed, 10, 8, soft=True), disposal=seed % 3, over=bool(seed % 2)) for seed in range(4)]
    return _alone("art.png", apng(10, 8, frames, default=noise(9, 10, 8)))


def _archive(method: int) -> Specimen:
    with tempfile.TemporaryDirectory() as folder:
        members = {"pack/item/a.png": png_of(sprite(1)), "pack/b.png": png_of(sprite(2)), "pack/read me.txt": b"hello"}
        return _alone("art.zip", zipped(Path(folder) / "art.zip", members, method).read_bytes())


def _layers() -> Specimen:
    layers = [
        ase.layer(kind=1), ase.layer(level=1, mode=3, opacity=200), ase.layer(level=1, mode=15), ase.layer(mode=18),
    ]  # fmt: skip
    cels = [
        ase.cel(1, ase.noise(1, 8, 8, 4)), ase.cel(2, ase.noise(2, 6, 6, 4), -1, 3, opacity=90, raw=True),
        ase.cel(3, ase.noise(3, 4, 9, 4), 2, -2, z=-2),
    ]  # fmt: skip
    later = [ase.link(1, 0), ase.cel(2, ase.noise(4, 5, 5, 4), raw=True)]
    first = ase.frame(*layers, ase.tags((0, 1, "walk"), (1, 7, "run")), *cels)
    return _alone("art.aseprite", ase.ase(first, ase.frame(*later), size=(8, 8), flags=3))


def _tilemaps() -> Specimen:
    tiles = ase.tileset(0, ase.noise(1, 3, 4, 4, 1, least=1))
    colours = [[10 * number, 50, 200, 255] for number in range(16)]
    cells = [[0, 1, 2 | ase.FLIP_X], [1 | ase.DIAGONAL, 2 | ase.FLIP_Y, 1]]
    layers = [ase.layer(kind=2), ase.layer()]
    packets = ase.old_palette([(2, [[1, 2, 3], [4, 5, 6]])])
    parts = [tiles, ase.palette(colours, names=True), packets, *layers]
    indices = ase.cel(1, ase.noise(5, 5, 5, 1) % 16, 1, 1, raw=True)
    return _alone("art.ase", ase.ase(ase.frame(*parts, ase.tilemap(0, cells), indices), size=(12, 8), depth=8))


def _grey_frames() -> Specimen:
    frames = [ase.frame(ase.layer(), ase.cel(0, ase.noise(1, 6, 6, 2), raw=True)), ase.frame(ase.link(0, 0))]
    return _alone("art.aseprite", ase.ase(*frames, size=(6, 6), depth=16))


def _idx(target: str) -> Specimen:
    """Unpacked; the example of the source is packed."""
    grey = np.random.default_rng(0).integers(0, 256, (3, 8, 8), np.uint8)
    pictures = struct.pack(">IIII", 0x803, *grey.shape) + grey.tobytes()
    labels = struct.pack(">II", 0x801, len(grey)) + bytes([3, 7, 0])
    return Specimen({"train-images-idx3-ubyte": pictures, "train-labels-idx1-ubyte": labels}, target)


def _sheet(target: str, *, named: bool) -> Specimen:
    listed = [frame(f"a{number}.png", 8 * number, 0, 8, 8) for number in range(3)]
    listed[1] |= {
        "trimmed": True, "sourceSize": {"w": 12, "h": 12}, "spriteSourceSize": {"x": 1, "y": 2, "w": 8, "h": 8},
    }  # fmt: skip
    frames = {item["filename"]: item for item in listed} if named else listed
    about = json.dumps({"frames": frames, "meta": {"image": "art.png"}}).encode()
    return Specimen({"art.png": png_of(sprite(1, 24, 8)), "art.json": about}, target)


def _tile_set(name: str, text: str) -> Specimen:
    """A sheet of six tiles with margin and spacing, and its tile set."""
    return Specimen({"s.png": png_of(test_tiled.sheet()), name: text.encode()}, name)


def _icon(mode: str, *sizes: int) -> Specimen:
    """An icon file of bitmaps, with a mask where there are fewer than 32 bits."""
    packed = io.BytesIO()
    options = {"bitmap_format": "bmp", "sizes": [(size, size) for size in sizes]}
    Image.fromarray(sprite(2, 16)).convert(mode).save(packed, "ICO", **options)
    return _alone("art.ico", packed.getvalue())


def xpm(rgba: Rgba) -> bytes:
    """An X pixmap of opaque and clear pixels, one character for each colour."""
    keys = {0: "."}
    rows = []
    for row in rgba.view("<u4")[..., 0].tolist():
        rows.append("".join(keys.setdefault(number, chr(ord("A") + len(keys))) for number in row))
    colours = [
        f'"{key} c #{number & 255:02X}{number >> 8 & 255:02X}{number >> 16 & 255:02X}"' if number else '". c None"'
        for number, key in keys.items()
    ]
    lines = [f'"{rgba.shape[1]} {rgba.shape[0]} {len(keys)} 1"', *colours, *(f'"{row}"' for row in rows)]
    return ("/* XPM */\nstatic char * art[] = {\n" + ",\n".join(lines) + "};\n").encode()


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "png": lambda: _alone("art.png", png_of(sprite(0)), spare=0),
    "png, interlaced": _interlaced,
    "png of 16 bits": _sixteen_bits,
    "png of a palette": _palette_png,
    "apng": _apng,
    "gif": lambda: _gif(1),
    "gif, animated": lambda: _gif(5),
    "bmp": functools.partial(by_pillow, "BMP", "RGB", ".bmp"),
    "bmp of a palette": functools.partial(by_pillow, "BMP", "P", ".bmp"),
    "webp, lossless": functools.partial(by_pillow, "WEBP", "RGBA", ".webp", lossless=True),
    "webp, lossy": functools.partial(by_pillow, "WEBP", "RGBA", ".webp", quality=50),
    "webp, animated": lambda: _alone("art.webp", ANIMATIONS[".webp"]),
    "jpeg": functools.partial(by_pillow, "JPEG", "RGB", ".jpg", exif=b"Exif\0\0II*\0\x08\0\0\0\0\0"),
    "jpeg, progressive": functools.partial(by_pillow, "JPEG", "CMYK", ".jpg", progressive=True),
    "tga": functools.partial(by_pillow, "TGA", "RGBA", ".tga"),
    "tga, packed": functools.partial(by_pillow, "TGA", "P", ".tga", compression="tga_rle"),
    "tga of a palette": functools.partial(by_pillow, "TGA", "P", ".tga"),
    "tiff": functools.partial(by_pillow, "TIFF", "RGBA", ".tif"),
    "tiff, packed": functools.partial(by_pillow, "TIFF", "RGB", ".tif", compression="tiff_lzw"),
    "tiff in LAB": functools.partial(by_pillow, "TIFF", "LAB", ".tif"),
    "tiff of fractions": functools.partial(by_pillow, "TIFF", "F", ".tif"),
    "ico": lambda: _icon("RGBA", 16),
    "ico of a palette": lambda: _icon("P", 8, 16),
    "qoi": functools.partial(by_pillow, "QOI", "RGBA", ".qoi"),
    "xpm": lambda: _alone("art.xpm", xpm(sprite(3))),
    "ppm": functools.partial(by_pillow, "PPM", "RGB", ".ppm"),
    "pcx": functools.partial(by_pillow, "PCX", "RGB", ".pcx"),
    # A pixel can look like the mark of the palette, which has no other place than the end.
    "pcx of a palette": lambda: replace(by_pillow("PCX", "P", ".pcx"), spare=None),
    "bmp with alpha": functools.partial(by_pillow, "BMP", "RGBA", ".bmp"),
    "zip, stored": lambda: _archive(zipfile.ZIP_STORED),
    "zip, deflated": lambda: _archive(zipfile.ZIP_DEFLATED),
    "zip, bzip2": lambda: _archive(zipfile.ZIP_BZIP2),
    "zip, lzma": lambda: _archive(zipfile.ZIP_LZMA),
    "aseprite, layers": _layers,
    "aseprite, tilemaps": _tilemaps,
    "aseprite, grey": _grey_frames,
    "idx": lambda: _idx("train-images-idx3-ubyte"),
    "idx, labels": lambda: _idx("train-labels-idx1-ubyte"),
    "sheet": lambda: _sheet("art.png", named=False),
    "sheet, list": lambda: _sheet("art.json", named=False),
    "sheet, object": lambda: _sheet("art.json", named=True),
    "tile set of tiled": lambda: _tile_set("s.tsx", test_tiled.tile_set(size='width="30" height="21"')),
    "tile set of ldtk": lambda: _tile_set("s.ldtk", test_ldtk.project(test_ldtk.TILES, layers=test_ldtk.LAYERS)),
    "tile set of godot": lambda: _tile_set("s.tres", test_godot_tiles.TILES),
    "xml atlas": lambda: _tile_set("s.xml", test_texture_atlas.ATLAS.format("s.png")),
}


def _examples(plugin: Source | AtlasFormat) -> Iterator[tuple[str, Callable[[], Specimen]]]:
    """Yield the example of a source or atlas format as a specimen for each of its files."""
    with tempfile.TemporaryDirectory() as folder:
        plugin.example(Path(folder))
        files = {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
    for name in files:
        yield f"{plugin.name}'s example, {name}", functools.partial(Specimen, files, name)


def _palette(form: PaletteFormat) -> Specimen:
    colours = np.random.default_rng(0).integers(0, 256, (12, 4), np.uint8)
    colours[:, 3] = 255
    name = f"twin{form.suffixes[0]}"
    return Specimen({name: form.write(Palette(colours, "Warm", ("Rust", *[""] * 11)))}, name, read=read_palette)


def _labels() -> Specimen:
    rows = b'file,class,price\nart.png,gem,12.5\n"sub/other, one.png",hat,-3e2\n'
    files = {"art.png": png_of(sprite(1)), "sub/other, one.png": png_of(sprite(2)), "labels.csv": rows}
    return Specimen(files, "labels.csv", read=read_labels)


_plugins: list[Source | AtlasFormat] = [*all_sources(), *atlas_formats()]
for _plugin in _plugins:
    SPECIMENS |= dict(_examples(_plugin))
for _form in palette_formats():
    SPECIMENS[f"palette, {_form.name}"] = functools.partial(_palette, _form)
SPECIMENS["labels"] = _labels


@functools.cache
def _contents() -> list[bytes]:
    return [specimen.files[specimen.target] for specimen in (make() for make in SPECIMENS.values())]


def damaged(specimen: Specimen) -> Iterator[bytes]:
    """The contents of the target, first whole and then changed in ever new ways, without an end."""
    rng = np.random.default_rng(0)
    others, whole = _contents(), specimen.files[specimen.target]
    yield whole
    while True:
        other = whole if rng.random() < 0.5 else others[int(rng.integers(len(others)))]
        data = mutated(whole, other, rng)
        yield with_right_checksums(data) if data.startswith(MAGIC[:4]) and rng.random() < 0.8 else data
