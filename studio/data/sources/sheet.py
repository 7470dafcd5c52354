"""Read sheets: images with many sprites, and a description file in an atlas format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from studio.core.formatting import count, percent
from studio.core.names import escape_unprintable
from studio.data.atlases.base import Atlas, Region
from studio.data.atlases.formats import atlas_formats
from studio.data.files.source_files import is_tile_set
from studio.data.images.decoding import read_bytes
from studio.data.images.frames import read_pictures
from studio.data.sheets.described import DescribedSheet
from studio.data.sources.base import PICTURE_SUFFIXES, Source, SourceFile, SourceImage, SourceIssue, UnreadableFile

_FEW = 0.05  # share of foreground pixels outside described sprites; larger shares are reported


class SheetSource(Source):
    """Reads sheets with a description file: each frame becomes a sprite. Its folders, or the sheet, give the class.

    Also claims tile set files, to report unusable files.
    """

    name = "sheet"
    order = -10

    def claims(self, file: SourceFile) -> bool:
        if file.suffix in PICTURE_SUFFIXES:
            return any(form.descriptions(file) for form in atlas_formats())
        return is_tile_set(file.file_name)

    def descriptions(self, file: SourceFile) -> Sequence[str]:
        atlas, _ = (None, "") if is_tile_set(file.file_name) else _atlas_of(file)
        return atlas.sources if atlas else ()

    def read(self, file: SourceFile) -> Iterator[SourceImage | SourceIssue]:
        if is_tile_set(file.file_name):
            yield from (SourceIssue("refused", words) for form in atlas_formats() if (words := form.problem(file)))
            return
        atlas, problem = _atlas_of(file)
        if atlas is None:
            yield from read_pictures(read_bytes(file), file.suffix)
            if problem:
                yield SourceIssue("description", problem)
            return
        items = list(read_pictures(read_bytes(file), file.suffix))
        images = [item for item in items if isinstance(item, SourceImage)]
        of_other_size = atlas.size_decides and atlas.size != images[0].rgba.shape[1::-1]
        if of_other_size or not images[0].may_be_sheet:  # animations are no sheets
            yield from items
            return
        try:
            sheet = DescribedSheet.of(images[0].rgba, atlas)
        except UnreadableFile as error:
            yield from items
            yield SourceIssue("description", error.reason)
            return
        yield from _sprites(sheet, atlas.regions, (escape_unprintable(file.stem),))
        yield from (item for item in items if isinstance(item, SourceIssue))

    def example(self, folder: Path) -> Path:
        return atlas_formats()[0].example(folder)


def _atlas_of(file: SourceFile) -> tuple[Atlas | None, str]:
    """Return (the first usable description of `file`, ''), or (None, the first problem found)."""
    problem = ""
    for form in atlas_formats():
        try:
            atlas = form.read(file)
        except UnreadableFile as error:
            problem = problem or error.reason
        else:
            if atlas is not None:
                return atlas, ""
    return None, problem


def _sprites(
    sheet: DescribedSheet, regions: Sequence[Region], folders: tuple[str, ...]
) -> Iterator[SourceImage | SourceIssue]:
    """Yield the sprites and issues of a described sheet; a single sprite becomes an image without a part name.

    folders: class name parts of frames without folders.
    """
    used: dict[str, int] = {}
    paths = _paths([region.name for region in regions])
    parts = [_part(path, number, used) for number, path in enumerate(paths)]
    if sheet.is_one_sprite:
        number, rgba = next(sheet.sprites())
        yield SourceImage(rgba, folders=paths[number][:-1], attributes=regions[number].attributes)
    else:
        for number, rgba in sheet.sprites():
            own = regions[number].attributes
            yield SourceImage(rgba, parts[number], paths[number][:-1] or folders, attributes=own)
    for problem in sheet.problems:
        yield SourceIssue(problem.group, problem.reason, parts[problem.number])
    if sheet.remark:
        yield SourceIssue("description", sheet.remark)
    if (unused := sheet.unused_share()) > _FEW:
        described = f"{count(len(sheet.regions), 'sprite')} described in {sheet.source}"
        rest = f"{described}: {percent(round(unused, 2))} of what is drawn lies outside"
        yield SourceImage(sheet.without_regions(), rest=rest)


def _paths(names: Sequence[str]) -> list[tuple[str, ...]]:
    """Split frame names at their folders and drop the leading folders shared by all frames.

    Every frame keeps its last folder: 'art/swords/1.png' and 'art/potions/1.png' -> ('swords', '1'), ('potions', '1').
    """
    paths = [tuple(name.replace("\\", "/").split("/")) for name in names]
    paths = [(*(_shortened(part) for part in path[:-1] if part.strip(" .")), path[-1]) for path in paths]
    shared = 0
    while all(len(path) > shared + 2 and path[shared] == paths[0][shared] for path in paths):
        shared += 1
    return [path[shared:] for path in paths]


def _part(path: Sequence[str], number: int, used: dict[str, int]) -> str:
    """Return a unique part name for frame `number`: folders and file name, without suffix. used: counts, updated."""
    *folders, last = path
    stem, dot, suffix = last.rpartition(".")
    if dot and f".{suffix.lower()}" in PICTURE_SUFFIXES | {".ase", ".aseprite"}:
        last = stem
    part = "/".join((*folders, _shortened(last) or f"frame {number}"))
    used[part] = used.get(part, 0) + 1
    return part if used[part] == 1 else f"{part} ({used[part]})"


def _shortened(name: str) -> str:
    return escape_unprintable(name)[:80].strip()
