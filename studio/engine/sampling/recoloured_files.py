"""Copy image files with other colours. Sizes, frames, durations and description files stay."""

import io
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
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
from studio.data.colour.palette import dominant_of
from studio.data.files.source_files import ImportIssue, SourceFile, SourceImage, UnreadableFile, os_error_reason
from studio.data.images.canvas import OPAQUE, as_rgba, as_uint32
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
_PART = "part"
# Pillow's lossless formats, with options for saving.
_LOSSLESS: dict[str, dict[str, bool]] = {"BMP": {}, "TGA": {}, "TIFF": {}, "WEBP": {"lossless": True, "exact": True}}


@dataclass(frozen=True, eq=False)
class FilesRecoloured(Event):
    """Yielded by `recolour_files` when all copies are written."""

    paths: tuple[Path, ...]  # all new files
    pictures: int  # number of images
    left_out: tuple[ImportIssue, ...]  # skipped files with reasons


@dataclass(frozen=True, eq=False)
class _Picture:
    """An image or animation in a file."""

    rgba: Rgba  # uint8 [frames, H, W, 4]
    kind: str  # Pillow's format, "aseprite", or "part" for an image inside a file
    durations_ms: tuple[int, ...] = ()
    tags: tuple[tuple[str, int, int, int], ...] = ()  # name, first and last frame, direction
    part: str = ""  # name of an image inside a file


class _Copier:
    """Copies image files into a folder and changes their colours."""

    def __init__(self, recolour: Callable[[Rgba], Rgba], out: Path) -> None:
        self._recolour, self._out = recolour, out
        self._described: set[tuple[str, str]] = set()  # path and name of each copied description
        self.paths: list[Path] = []
        self.pictures = 0

    def copy(self, file: SourceFile, source: Source) -> None:
        """Copy an image file, and the description files of a sheet. Raises UnreadableFile, OSError, ExportError."""
        for picture in _pictures(file, source):
            rgba = self._recolour(picture.rgba)
            if picture.kind == _PART:
                inside = [file.stem] if picture.part else []
                self._write(file, f"{picture.part or file.stem}.png", encode_png(rgba[0]), inside=inside)
            else:
                self._write(file, *_encoded(file, picture, rgba))
            if source.name in _PICTURES:
                self._copy_descriptions(file, source)

    def _copy_descriptions(self, file: SourceFile, source: Source) -> None:
        """Copy the description files of a sprite sheet unchanged: frames keep their positions."""
        for beside in source.descriptions(file):
            description = file.sibling(beside)
            if (description.path_str, description.name) not in self._described:
                self._described.add((description.path_str, description.name))
                self._write(description, description.file_name, read_bytes(description), is_picture=False)

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


def recolour_files(paths: Sequence[Path], recolour: Callable[[Rgba], Rgba], out: Path) -> Generator[Event, None, None]:
    """Copy image files and change their colours: yields Progress, then one FilesRecoloured.

    Copies all images under `paths` into `out` with unchanged folders, names, sizes and frames. recolour: returns
    recoloured frames, uint8 [N, H, W, 4]. Raises ExportError, and BadInputError if no file can be copied.
    """
    copier, left_out = _Copier(recolour, out), list[ImportIssue]()
    yield from _for_each_file(paths, copier.copy, "files copied", left_out)
    if not copier.pictures:
        raise _nothing_usable(paths, "copy", left_out)
    yield FilesRecoloured(tuple(copier.paths), copier.pictures, tuple(left_out))


@dataclass(frozen=True, eq=False)
class ColoursFound(Event):
    """Yielded by `find_file_colours` at the end."""

    colours: Rgba  # uint8 [K, 4], sorted for display


def find_file_colours(paths: Sequence[Path], count: int) -> Generator[Event, None, None]:
    """Find at most `count` dominant colours of all images under `paths`: yields Progress, then one ColoursFound.

    Reads the same files as `recolour_files`. Raises BadInputError if no file can be read or no pixel is opaque.
    """
    pixels, left_out = Counter[int](), list[ImportIssue]()

    def add(file: SourceFile, source: Source) -> None:
        for picture in _pictures(file, source):
            values, counts = np.unique(as_uint32(picture.rgba), return_counts=True)
            pixels.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))

    yield from _for_each_file(paths, add, "files read", left_out)
    if not pixels:
        raise _nothing_usable(paths, "recolour", left_out)
    opaque = [(value, uses) for value, uses in pixels.most_common() if value >= OPAQUE]
    if not opaque:
        raise BadInputError(f"{title_of_roots(resolve_roots(paths))!r} has no opaque pixels.", "Choose other images.")
    values, uses = np.array(opaque, np.int64).T
    colours = as_rgba(values.astype(np.uint32))
    yield ColoursFound(dominant_of(colours, uses, count))


def _for_each_file(
    paths: Sequence[Path], use: Callable[[SourceFile, Source], None], noun: str, left_out: list[ImportIssue]
) -> Generator[Event, None, None]:
    """Call `use` with each image file; append unusable files to `left_out`. Yields Progress."""
    sources = all_sources()
    found, problems = yield from list_files(resolve_roots(paths))
    left_out += problems
    for number, file in enumerate(found):
        yield Progress(number, len(found), noun)
        source = next((each for each in sources if each.claims(file)), None)
        try:
            if source is not None:
                use(file, source)
        except UnreadableFile as refused:
            left_out.append(ImportIssue(file.name, refused.reason, refused.group, file.path))
        except OSError as error:
            left_out.append(ImportIssue(file.name, os_error_reason(error, "file"), "no access", file.path))


def _nothing_usable(paths: Sequence[Path], verb: str, left_out: Sequence[ImportIssue]) -> BadInputError:
    why = f"{left_out[0].name}: {left_out[0].reason}." if left_out else "Choose a folder with images."
    return BadInputError(f"{title_of_roots(resolve_roots(paths))!r} has no picture to {verb}.", why)


def _pictures(file: SourceFile, source: Source) -> Iterator[_Picture]:
    """Read the images of a file. Raises UnreadableFile, OSError."""
    if source.name == _ASEPRITE:
        yield _aseprite(parse(read_bytes(file)))
    elif source.name not in _PICTURES:
        for item in source.read(file):
            if isinstance(item, SourceImage):
                yield _Picture(item.rgba[None], _PART, part=item.part)
    elif (data := read_picture_bytes(file)) is not None:
        film = read_animation(data, file.suffix)
        yield _Picture(film.rgba, read_header(data, file.suffix).kind, film.durations_ms)


def _aseprite(ase: AseFile) -> _Picture:
    """Return the frames and tags of an Aseprite file, with all layers merged into one. Raises UnreadableFile."""
    if ase.frame_count > len(ase.frames):
        raise UnreadableFile("refused", f"it has more than {len(ase.frames):,} frames")
    try:
        painter = FramePainter(ase)
        rgba = np.stack([painter.render(frame) for frame in ase.frames])
    except MemoryError:
        raise UnreadableFile("refused", "too large for the free memory") from None
    last, durations = len(ase.frames) - 1, tuple(frame.duration_ms for frame in ase.frames)
    tags = [(tag.name, tag.first, min(tag.last, last), tag.direction) for tag in ase.tags if tag.first <= last]
    return _Picture(rgba, _ASEPRITE, durations, tuple(tags))


def _encoded(file: SourceFile, picture: _Picture, rgba: Rgba) -> tuple[str, bytes]:
    """Encode a picture with new pixels; return name and bytes. PNG replaces formats that would change pixels."""
    kind, durations = picture.kind, picture.durations_ms
    if kind == _ASEPRITE:
        classes = [""] * len(rgba)
        tagged = SpriteSet(rgba, classes=classes, own_durations_ms=durations, tags=list(picture.tags))
        return file.file_name, _encode("aseprite", tagged)
    sprites = SpriteSet(rgba, own_durations_ms=durations, is_animation=True)
    if kind == "GIF" and not sprite_exports()["gif"].notes(sprites):
        return _file_name(file, "GIF"), _encode("gif", sprites)
    if durations:
        return _file_name(file, "PNG"), _encode("apng", sprites)
    if kind in _LOSSLESS:
        packed = io.BytesIO()
        Image.fromarray(rgba[0]).save(packed, kind, **_LOSSLESS[kind])
        return _file_name(file, kind), packed.getvalue()
    return _file_name(file, "PNG"), encode_png(rgba[0])


def _file_name(file: SourceFile, kind: str) -> str:
    """Return the file's name with a suffix of an image format. kind: the format, such as 'PNG'."""
    return file.file_name if file.suffix in KIND_SUFFIXES[kind] else f"{file.stem}{KIND_SUFFIXES[kind][0]}"


def _encode(form: str, sprites: SpriteSet) -> bytes:
    """Return the bytes of a file with the sprites, in the sprite format named `form`."""
    (data,) = sprite_exports()[form].contents(sprites, Path(form)).values()
    return data
