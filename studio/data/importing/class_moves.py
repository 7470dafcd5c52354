"""Load the user's edits of imported folders, apply moves to other classes, and move further sprites."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np

from studio.core.arrays import Rgba
from studio.core.events import Event, Progress
from studio.data.edits import Edits, FolderEdits, SpriteEdit, read_edits, with_edits
from studio.data.files.source_files import ImportIssue
from studio.data.images.canvas import crop_transparent, sprite_slices, undo_upscaling
from studio.data.import_result import Duplicate, ImportResult, ReadSprites, duplicate_reason
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


def content_key(rgba: Rgba) -> str:
    """Return a hash of a sprite's visible pixels, 32 hex digits: the key of its edits.

    The canvas size and whole-number upscaling don't change the key; equal sprites share it.
    """
    pixels = np.ascontiguousarray(crop_transparent(undo_upscaling(rgba, 0)))
    digest = hashlib.blake2b(repr(pixels.shape).encode(), digest_size=16)
    digest.update(pixels.data)
    return digest.hexdigest()


def apply_edits(imported: ImportResult, edits: Edits) -> Generator[Event, None, ImportResult]:
    """Move sprites of an import to the classes in `edits`, with a note for each; yields Progress.

    Edits whose sprite is missing get a note, too. Duplicates follow the kept sprite.
    """
    known = {key: edit for each in edits for key, edit in each.sprites.items()}
    if not known:
        return imported
    sprites = imported.sprites
    classes, labels = sprites.class_names, sprites.labels.tolist()
    moved: dict[int, str] = {}
    found = set()
    for part in sprite_slices(sprites.rgba, pixels=_BATCH_PIXELS):
        for index, rgba in enumerate(sprites.rgba[part], part.start):
            key = content_key(rgba)
            edit = known.get(key)
            if edit is not None:
                found.add(key)
                if edit.class_name and edit.class_name != classes[labels[index]]:
                    moved[index] = edit.class_name
        yield Progress(part.stop, len(sprites), "sprites compared")
    notes = [
        ImportIssue(sprites.names[index], f"class {name!r} instead of {classes[labels[index]]!r}", "moved")
        for index, name in moved.items()
    ]
    notes += _lost_edits(edits, found)
    if not notes:
        return imported
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


@dataclass(frozen=True, eq=False)
class ClassMove:
    """A pending move of sprites to a class; `edits` hashes their pixels, which takes long for many sprites."""

    before: Edits | ClassMove
    read: ReadSprites
    indices: tuple[int, ...]  # positions of the imported sprites
    class_name: str

    @cached_property
    def edits(self) -> Edits:
        """The edits with this move. A sprite moved back to the class of its files has no edit."""
        before = self.before.edits if isinstance(self.before, ClassMove) else self.before
        sprites, rows = self.read.sprites, self.read.rows
        changes: list[dict[str, SpriteEdit]] = [{} for _ in before]
        for row in rows[list(self.indices)].tolist():
            name, key = sprites.names[row], content_key(sprites.rgba[row])
            is_back = sprites.class_names[sprites.labels[row]] == self.class_name
            number = next((number for number, each in enumerate(before) if each.holds(name)), 0)
            old = before[number].sprites.get(key, SpriteEdit())
            class_name = "" if is_back else self.class_name
            changes[number][key] = msgspec.structs.replace(old, name=name, class_name=class_name)
        return with_edits(before, changes)


def _lost_edits(edits: Edits, found: set[str]) -> list[ImportIssue]:
    """Return a note for each edit without a sprite; skip folders with only some files imported."""
    return [
        ImportIssue(edit.name, f"moved to class {edit.class_name!r}, but no sprite has these pixels", "lost moves")
        for each in edits
        if each.is_whole
        for key, edit in each.sprites.items()
        if key not in found and edit.class_name
    ]


def _with_class(duplicate: Duplicate, moved: Mapping[int, str], imported: ImportResult) -> Duplicate:
    """Return the duplicate with the new class of its kept sprite; unchanged if the kept sprite was not moved."""
    name = moved.get(duplicate.first)
    if name is None:
        return duplicate
    sprites, first = imported.sprites, duplicate.first
    differ = not np.array_equal(sprites.targets[first], duplicate.numbers, equal_nan=True)
    reason = duplicate_reason(sprites.names[first], (name, name), numbers_differ=differ)
    return dataclasses.replace(duplicate, item=dataclasses.replace(duplicate.item, reason=reason), class_name=name)
