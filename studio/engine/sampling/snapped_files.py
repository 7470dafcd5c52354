"""Copy image files and reduce their colours to a palette. Sizes, frames, durations and description files stay."""

import io
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from studio.core import files
from studio.core.arrays import Rgba
from studio.core.errors import BadInputError
from studio.core.events import Event, Progress
from studio.core.names import escape_unprintable
from studio.data.aseprite.file import AseFile, parse
from studio.data.aseprite.frames import FramePainter
from studio.data.colour.palette import Palette
from studio.data.colour.quantizing import map_to_palette
from studio.data.files.source_files import ImportIssue, SourceFile, SourceImage, UnreadableFile, os_error_reason
from studio.data.images.decoding import read_bytes, read_header, read_picture_bytes
from studio.data.images.frames import read_animation
from studio.data.images.kinds import KIND_SUFFIXES
from studio.data.importing.importing import list_files
from studio.data.reading.finding import resolve_roots, title_of_roots
from studio.data.reading.read import all_sources
from studio.data.sources.base import Source
from studio.exports.png import encode_png
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.formats import sprite_exports

_ASEPRITE, _PICTURES = "aseprite", ("picture", "sheet")  # names of sources
# Formats that Pillow can write without loss, and its options for them.
_LOSSLESS: dict[str, dict[str, bool]] = {"BMP": {}, "TGA": {}, "TIFF": {}, "WEBP": {"lossless": True, "exact": True}}


@dataclass(frozen=True, eq=False)
class FilesSnapped(Event):
    """Yielded by `snap_files` when all copies are written."""

    paths: tuple[Path, ...]  # all new files
    pictures: int  # number of images
    left_out: tuple[ImportIssue, ...]  # skipped files with reasons


class _Snapper:
    """Copies image files into a folder and reduces their colours to a palette."""

    def __init__(self, palette: Palette, dither: str, out: Path) -> None:
        self._palette, self._dither, self._out = palette, dither, out
        self._described: set[tuple[str, str]] = set()  # path and name of each copied description
        self.paths: list[Path] = []
        self.pictures = 0

    def copy(self, file: SourceFile, source: Source) -> None:
        """Copy an image file, and the description files of a sheet. Raises UnreadableFile, OSError, ExportError."""
        if source.name == _ASEPRITE:
            self._write(file, file.file_name, self._aseprite(parse(read_bytes(file))))
        elif source.name not in _PICTURES:
            self._copy_parts(file, source)
        elif (data := read_picture_bytes(file)) is not None:
            self._write(file, *self._picture(file, data))
            self._copy_descriptions(file, source)

    def _picture(self, file: SourceFile, data: bytes) -> tuple[str, bytes]:
        """Return the name and bytes of an image's copy, as PNG if its own format would lose pixels."""
        kind, film = read_header(data, file.suffix).kind, read_animation(data, file.suffix)
        rgba = self._snapped(film.rgba)
        sprites = SpriteSet(rgba, own_durations_ms=film.durations_ms, is_animation=True)
        if kind == "GIF" and not sprite_exports()["gif"].notes(sprites):
            return _file_name(file, "GIF"), _encode("gif", sprites)
        if film.durations_ms:
            return _file_name(file, "PNG"), _encode("apng", sprites)
        if kind in _LOSSLESS:
            packed = io.BytesIO()
            Image.fromarray(rgba[0]).save(packed, kind, **_LOSSLESS[kind])
            return _file_name(file, kind), packed.getvalue()
        return _file_name(file, "PNG"), encode_png(rgba[0])

    def _aseprite(self, ase: AseFile) -> bytes:
        """Return the copy of an Aseprite file, with all layers merged into one. Raises UnreadableFile."""
        if ase.frame_count > len(ase.frames):
            raise UnreadableFile("refused", f"it has more than {len(ase.frames):,} frames")
        try:
            painter = FramePainter(ase)
            rgba = self._snapped(np.stack([painter.render(frame) for frame in ase.frames]))
        except MemoryError:
            raise UnreadableFile("refused", "too large for the free memory") from None
        last, durations = len(ase.frames) - 1, [frame.duration_ms for frame in ase.frames]
        tags = [(tag.name, tag.first, min(tag.last, last), tag.direction) for tag in ase.tags if tag.first <= last]
        return _encode("aseprite", SpriteSet(rgba, classes=[""] * len(rgba), own_durations_ms=durations, tags=tags))

    def _copy_parts(self, file: SourceFile, source: Source) -> None:
        """Write each image inside a file as a PNG, in a folder named after the file."""
        for item in source.read(file):
            if isinstance(item, SourceImage):
                data = encode_png(self._snapped(item.rgba[None])[0])
                self._write(file, f"{item.part or file.stem}.png", data, inside=[file.stem] if item.part else [])

    def _copy_descriptions(self, file: SourceFile, source: Source) -> None:
        """Copy the description files of a sprite sheet unchanged, because its frames keep their positions."""
        for beside in source.descriptions(file):
            description = file.sibling(beside)
            if (description.path_str, description.name) not in self._described:
                self._described.add((description.path_str, description.name))
                self._write(description, description.file_name, read_bytes(description), is_picture=False)

    def _snapped(self, rgba: Rgba) -> Rgba:
        return map_to_palette(rgba, self._palette, self._dither)

    def _write(
        self, file: SourceFile, name: str, data: bytes, *, inside: Sequence[str] = (), is_picture: bool = True
    ) -> None:
        folders = [*file.name.split("/")[:-1], *inside]
        stem, _, suffix = escape_unprintable(name).rpartition(".")
        safe = f"{files.safe_name(stem, 'sprite')}.{files.safe_name(suffix)}"
        target = files.free_path(self._out.joinpath(*map(files.safe_name, folders), safe))
        files.export_together({target: data})
        self.paths.append(target)
        self.pictures += is_picture


def snap_files(paths: Sequence[Path], palette: Palette, dither: str, out: Path) -> Generator[Event, None, None]:
    """Copy image files and reduce their colours to a palette: yields Progress, then one FilesSnapped.

    Copies all images under `paths` into `out`, with the same folders, names, sizes and frames. dither: a value from
    DITHERS. Raises ExportError, and BadInputError if no file can be copied.
    """
    roots, sources = resolve_roots(paths), all_sources()
    found, problems = yield from list_files(roots)
    snapper, left_out = _Snapper(palette, dither, out), list(problems)
    for number, file in enumerate(found):
        yield Progress(number, len(found), "files copied")
        left_out += _try_copy(snapper, file, next((each for each in sources if each.claims(file)), None))
    if not snapper.pictures:
        why = f"{left_out[0].name}: {left_out[0].reason}." if left_out else "Choose a folder with images."
        raise BadInputError(f"{title_of_roots(roots)!r} has no picture to copy.", why)
    yield FilesSnapped(tuple(snapper.paths), snapper.pictures, tuple(left_out))


def _try_copy(snapper: _Snapper, file: SourceFile, source: Source | None) -> Iterator[ImportIssue]:
    """Copy one file; yield the reason if the copy fails."""
    try:
        if source is not None:
            snapper.copy(file, source)
    except UnreadableFile as refused:
        yield ImportIssue(file.name, refused.reason, refused.group, file.path)
    except OSError as error:
        yield ImportIssue(file.name, os_error_reason(error, "file"), "no access", file.path)


def _file_name(file: SourceFile, kind: str) -> str:
    """Return the file's name with a suffix of an image format. kind: the format, such as 'PNG'."""
    return file.file_name if file.suffix in KIND_SUFFIXES[kind] else f"{file.stem}{KIND_SUFFIXES[kind][0]}"


def _encode(form: str, sprites: SpriteSet) -> bytes:
    """Return the bytes of a file with the sprites, in the sprite format named `form`."""
    (data,) = sprite_exports()[form].contents(sprites, Path(form)).values()
    return data
