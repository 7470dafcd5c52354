"""Copies of picture files in the colours of a palette: sizes, frames, durations and descriptions as in the files."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from studio.core import files
from studio.core.errors import BadInputError
from studio.core.events import Event, Progress, Rgba
from studio.data.aseprite.file import AseFile, parse
from studio.data.aseprite.frames import Painter
from studio.data.colour.palette import Palette
from studio.data.colour.snapping import snap
from studio.data.images.decoding import picture_bytes, read_bytes, recognise
from studio.data.images.frames import film_in
from studio.data.images.kinds import KIND_SUFFIXES
from studio.data.importing import all_sources, list_files
from studio.data.naming import shown
from studio.data.reading.finding import no_access, roots_of, title_of
from studio.data.source_files import Picture, Quarantined, Refused, SourceFile
from studio.data.sources.base import Source
from studio.exports.png import encoded
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.formats import sprite_exports

_ASEPRITE, _PICTURES = "aseprite", ("picture", "sheet")  # names of sources
# Formats that Pillow writes without loss, with the options.
_LOSSLESS: dict[str, dict[str, bool]] = {
    "BMP": {},
    "TGA": {},
    "TIFF": {},
    "WEBP": {"lossless": True, "exact": True},
}  # Pillow's options


@dataclass(frozen=True, eq=False)
class FilesSnapped(Event):
    """paths: the files written. pictures: how many of these are pictures. left_out: files without a copy, and why."""

    paths: tuple[Path, ...]
    pictures: int
    left_out: tuple[Quarantined, ...]


class _Snapper:
    """Writes the copies into one folder."""

    def __init__(self, palette: Palette, dither: str, out: Path) -> None:
        self._palette, self._dither, self._out = palette, dither, out
        self._described: set[tuple[str, str]] = set()  # path and name of each copied description
        self.paths: list[Path] = []
        self.pictures = 0

    def copy(self, file: SourceFile, source: Source) -> None:
        """Write the copies of a file and of its descriptions. Raises Refused, OSError, ExportError."""
        if source.name == _ASEPRITE:
            self._write(file, file.file_name, self._aseprite(parse(read_bytes(file))))
        elif source.name in _PICTURES:
            data = picture_bytes(file)
            if data is not None:
                self._write(file, *self._picture(file, data))
                self._copy_descriptions(file, source)
        else:
            self._copy_parts(file, source)

    def _picture(self, file: SourceFile, data: bytes) -> tuple[str, bytes]:
        """Return name and bytes of the copy: in the format of the file, or in PNG where that format loses pixels."""
        kind, film = recognise(data, file.suffix).kind, film_in(data, file.suffix)
        rgba = self._snapped(film.rgba)
        sprites = SpriteSet(rgba, own_durations_ms=film.durations_ms, is_animation=True)
        if kind == "GIF" and not sprite_exports()["gif"].notes(sprites):
            return _named(file, "GIF"), _contents("gif", sprites)
        if film.durations_ms:
            return _named(file, "PNG"), _contents("apng", sprites)
        if kind in _LOSSLESS:
            packed = io.BytesIO()
            Image.fromarray(rgba[0]).save(packed, kind, **_LOSSLESS[kind])
            return _named(file, kind), packed.getvalue()
        return _named(file, "PNG"), encoded(rgba[0])

    def _aseprite(self, ase: AseFile) -> bytes:
        """Return an Aseprite file of one layer, into which all layers are merged. Raises Refused."""
        if ase.frame_count > len(ase.frames):
            raise Refused("refused", f"it has more than {len(ase.frames):,} frames")
        try:
            painter = Painter(ase)
            rgba = self._snapped(np.stack([painter.picture(frame) for frame in ase.frames]))
        except MemoryError:
            raise Refused("refused", "too large for the free memory") from None
        last = len(ase.frames) - 1
        tags = [(tag.name, tag.first, min(tag.last, last), tag.direction) for tag in ase.tags if tag.first <= last]
        durations = [frame.duration_ms for frame in ase.frames]
        classes = [""] * len(rgba)
        return _contents("aseprite", SpriteSet(rgba, classes=classes, own_durations_ms=durations, tags=tags))

    def _copy_parts(self, file: SourceFile, source: Source) -> None:
        """Write each picture of a file as a PNG, in a folder with the name of the file."""
        for item in source.read(file):
            if isinstance(item, Picture):
                data = encoded(self._snapped(item.rgba[None])[0])
                self._write(file, f"{item.part or file.stem}.png", data, inside=[file.stem] if item.part else [])

    def _copy_descriptions(self, file: SourceFile, source: Source) -> None:
        """Copy the descriptions of a sheet unchanged: the frames keep their places."""
        for beside in source.descriptions(file):
            description = file.neighbour(beside)
            if (description.where, description.name) not in self._described:
                self._described.add((description.where, description.name))
                self._write(description, description.file_name, read_bytes(description), is_picture=False)

    def _snapped(self, rgba: Rgba) -> Rgba:
        return snap(rgba, self._palette, self._dither)

    def _write(
        self, file: SourceFile, name: str, data: bytes, *, inside: Sequence[str] = (), is_picture: bool = True
    ) -> None:
        folders = [*file.name.split("/")[:-1], *inside]
        stem, _, suffix = shown(name).rpartition(".")
        safe = f"{files.safe_name(stem, 'sprite')}.{files.safe_name(suffix)}"
        target = files.free_path(self._out.joinpath(*map(files.safe_name, folders), safe))
        files.export_together({target: data})
        self.paths.append(target)
        self.pictures += is_picture


def snap_files(paths: Sequence[Path], palette: Palette, dither: str, out: Path) -> Generator[Event, None, None]:
    """Write copies of the picture files under `paths` into `out`: yields Progress, and FilesSnapped last.

    A copy keeps its folders, its name, its size and all its frames; only its colours change. dither: as in `snap`.
    Raises BadInputError where no file can be copied, and ExportError.
    """
    roots, sources = roots_of(paths), all_sources()
    found, problems = yield from list_files(roots)
    snapper, left_out = _Snapper(palette, dither, out), list(problems)
    for number, file in enumerate(found):
        yield Progress(number, len(found), "files copied")
        left_out += _tried(snapper, file, next((each for each in sources if each.claims(file)), None))
    if not snapper.pictures:
        why = f"{left_out[0].name}: {left_out[0].reason}." if left_out else "Name a folder with pictures."
        raise BadInputError(f"There are no pictures in {title_of(roots)!r} that can be copied.", why)
    yield FilesSnapped(tuple(snapper.paths), snapper.pictures, tuple(left_out))


def _tried(snapper: _Snapper, file: SourceFile, source: Source | None) -> Iterator[Quarantined]:
    """Copy one file, or tell why it has no copy."""
    try:
        if source is not None:
            snapper.copy(file, source)
    except Refused as refused:
        yield Quarantined(file.name, refused.reason, refused.group, file.path)
    except OSError as error:
        yield Quarantined(file.name, no_access(error, "file"), "no access", file.path)


def _named(file: SourceFile, kind: str) -> str:
    """Return the name of the file with a suffix of the kind of picture."""
    return file.file_name if file.suffix in KIND_SUFFIXES[kind] else f"{file.stem}{KIND_SUFFIXES[kind][0]}"


def _contents(form: str, sprites: SpriteSet) -> bytes:
    (data,) = sprite_exports()[form].contents(sprites, Path(form)).values()
    return data
