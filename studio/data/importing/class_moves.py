"""Load the user's edits of imported folders, apply them, and move further sprites to other classes."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from studio.core import formatting
from studio.core.events import Event, Notice, Progress
from studio.core.names import escape_unprintable
from studio.data.edits import RENAMED, Edits, FolderEdits, SpriteEdit, read_edits, unfollowed_edits
from studio.data.files.source_files import ImportIssue
from studio.data.images.canvas import sprite_slices
from studio.data.import_result import Duplicate, ImportResult, ReadSprites, duplicate_reason
from studio.data.importing.attribute_edits import with_renames, with_values
from studio.data.importing.edit_changes import EditChange, SpriteChange, content_key
from studio.data.importing.recolouring import recolour_edited
from studio.data.options import ImportOptions
from studio.data.reading.finding import resolve_roots
from studio.data.sprites import Sprites

_BATCH_PIXELS = 1 << 18  # pixels


def load_edits(sources: Sequence[Path], options: ImportOptions) -> Edits:
    """Load the edits of all imported folders; load no edits if the options ignore them.

    A file imported alone uses the edits of its folder. Raises EditsError, and BadInputError for a missing path.
    """
    labels: dict[Path, list[str]] = {}
    whole: dict[Path, bool] = {}
    for root in resolve_roots(sources):
        is_whole = root.is_folder or root.is_archive
        folder = root.path if is_whole else root.path.parent
        labels.setdefault(folder, []).append("/".join(root.label))
        whole[folder] = is_whole
    follows = options.edits == "on"
    return tuple(
        FolderEdits(folder, tuple(own), read_edits(folder) if follows else {}, whole[folder])
        for folder, own in labels.items()
    )


def notices_on_unfollowed(edits: Edits, options: ImportOptions) -> Iterator[Notice]:
    """Yield a notice for each other folder, inside or around the imported folders, with moves of these sprites."""
    for folder, moves in (unfollowed_edits(edits) if options.edits == "on" else {}).items():
        verb = "is" if moves == 1 else "are"
        title = f"{formatting.count(moves, 'edit')} in {escape_unprintable(folder.name)!r} {verb} not followed."
        yield Notice("info", title, f"To follow them, open {escape_unprintable(str(folder))}.")


def apply_edits(
    imported: ImportResult, edits: Edits, folder: Path | None = None
) -> Generator[Event, None, ImportResult]:
    """Give sprites of an import the classes, colours and attributes in `edits`, with a note for each; yields Progress.

    Edits whose sprite is missing get a note, too. Duplicates follow the class of the kept sprite. Many recoloured
    sprites go to a scratch file in `folder`. Raises OSError if the disk is full.
    """
    known = {key: edit for each in edits for key, edit in each.sprites.items()}
    if not known:
        return imported
    sprites = imported.sprites
    classes, labels = sprites.class_names, sprites.labels.tolist()
    moved: dict[int, str] = {}
    recoloured: dict[int, SpriteEdit] = {}
    attributes: dict[int, Mapping[str, str]] = {}
    found = set()
    for part in sprite_slices(sprites.rgba, pixels=_BATCH_PIXELS):
        for index, rgba in enumerate(sprites.rgba[part], part.start):
            key = content_key(rgba)
            edit = known.get(key)
            if edit is not None:
                found.add(key)
                if edit.class_name and edit.class_name != classes[labels[index]]:
                    moved[index] = edit.class_name
                if edit.colours:
                    recoloured[index] = edit
                if edit.attributes:
                    attributes[index] = edit.attributes
        yield Progress(part.stop, len(sprites), "sprites compared")
    notes = [*_edit_notes(sprites, moved, recoloured, attributes), *_lost_edits(edits, found)]
    named = with_renames(sprites, edits)
    if not notes and named is sprites.attributes:
        return imported
    sprites = dataclasses.replace(sprites, attributes=with_values(named, attributes, len(sprites)))
    if recoloured:
        rgba = yield from recolour_edited(sprites.rgba, recoloured, folder)
        sprites = dataclasses.replace(sprites, rgba=rgba, stored=None)
    duplicates = tuple(_with_class(each, moved, imported) for each in imported.duplicates)
    pairs = zip(imported.duplicates, duplicates, strict=True)
    items = {(old.item.name, old.item.group): new.item for old, new in pairs if new is not old}
    return dataclasses.replace(
        imported,
        sprites=with_classes(sprites, moved),
        quarantine=tuple(items.get((item.name, item.group), item) for item in imported.quarantine),
        notes=tuple(sorted([*imported.notes, *notes], key=lambda item: item.name)),
        duplicates=duplicates,
    )


def _edit_notes(
    sprites: Sprites, moved: Mapping[int, str], recoloured: Mapping[int, SpriteEdit],
    attributes: Mapping[int, Mapping[str, str]],
) -> list[ImportIssue]:  # fmt: skip
    """Return a note for each edited sprite. sprites: before the edits. Mappings: by the sprite's index."""
    names, classes, labels = sprites.names, sprites.class_names, sprites.labels.tolist()
    notes = [
        ImportIssue(names[index], f"class {name!r} instead of {classes[labels[index]]!r}", "moved")
        for index, name in moved.items()
    ]
    notes += [
        ImportIssue(names[index], f"{formatting.count(len(edit.colours), 'colour')} changed", "recoloured")
        for index, edit in recoloured.items()
    ]
    for index, values in attributes.items():
        told = ", ".join(f"{name} {value or 'none'}" for name, value in values.items())
        notes.append(ImportIssue(names[index], told, "attributed"))
    return notes


def with_classes(sprites: Sprites, moved: Mapping[int, str]) -> Sprites:
    """Return sprites with new class names by index; classes stay sorted by name, and empty classes are removed."""
    if not moved:
        return sprites
    names, new = list(sprites.class_names), sprites.labels.copy()
    for index, name in moved.items():
        if name not in names:
            names.append(name)
        new[index] = names.index(name)
    used, labels = np.unique(new, return_inverse=True)
    left = [names[label] for label in used]
    class_names = tuple(sorted(left))
    rank = np.array([class_names.index(name) for name in left], np.int64)
    return dataclasses.replace(sprites, labels=rank[labels], class_names=class_names)


def moved_by_class(moved: Iterable[str], sprites: Sprites) -> dict[str, list[str]]:
    """Return the names of moved sprites by class name, for run.json. moved: names, perhaps of excluded sprites too."""
    names = set(moved)
    classes: dict[str, list[str]] = {}
    for name, label in zip(sprites.names, sprites.labels.tolist(), strict=True) if names else ():
        if name in names:
            classes.setdefault(sprites.class_names[label], []).append(name)
    return classes


class ClassMove(SpriteChange):
    """A move of imported sprites to a class. A sprite moved back to the class in its file has no class edit."""

    noun = "sprites moved"

    def __init__(self, before: Edits | EditChange, read: ReadSprites, indices: Sequence[int], class_name: str) -> None:
        """Create a move. See SpriteChange."""
        super().__init__(before, read, indices)
        self._class_name = class_name

    def _changed(self, index: int, row: int, old: SpriteEdit, folder: Mapping[str, SpriteEdit]) -> SpriteEdit:
        sprites = self._read.sprites
        is_back = sprites.class_names[sprites.labels[row]] == self._class_name
        return msgspec.structs.replace(old, class_name="" if is_back else self._class_name)


def _lost_edits(edits: Edits, found: set[str]) -> list[ImportIssue]:
    """Return a note for each edit without a sprite; skip folders with only some files imported."""
    return [
        ImportIssue(edit.name, f"{_words(edit)}, but no sprite has these pixels", "lost moves")
        for each in edits
        if each.is_whole
        for key, edit in each.sprites.items()
        if key not in found and not key.startswith(RENAMED)
    ]


def _words(edit: SpriteEdit) -> str:
    if edit.class_name:
        return f"moved to class {edit.class_name!r}"
    return "recoloured" if edit.colours else "given attributes"


def _with_class(duplicate: Duplicate, moved: Mapping[int, str], imported: ImportResult) -> Duplicate:
    """Return the duplicate with the new class of its kept sprite; unchanged if the kept sprite was not moved."""
    name = moved.get(duplicate.first)
    if name is None:
        return duplicate
    sprites, first = imported.sprites, duplicate.first
    differ = not np.array_equal(sprites.targets[first], duplicate.numbers, equal_nan=True)
    reason = duplicate_reason(sprites.names[first], (name, name), numbers_differ=differ)
    return dataclasses.replace(duplicate, item=dataclasses.replace(duplicate.item, reason=reason), class_name=name)
