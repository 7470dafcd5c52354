"""Parse sprites' names into words for the view, the animation and the set.

'knight_walk_left_2.png' means set 'knight', view 'left', frame 'walk2'; 'left/12.png' means set '12', view 'left'.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

from studio.data.images.kinds import DRAWING_SUFFIXES
from studio.data.sets.layout import Place

DOWN, UP, LEFT, RIGHT = ("down", "front", "south"), ("up", "back", "north"), ("left", "west"), ("right", "east")
_DIAGONAL = ("downleft", "downright", "upleft", "upright", "southwest", "southeast", "northwest", "northeast")
VIEWS = (*DOWN, *UP, *LEFT, *RIGHT, "side", *_DIAGONAL, "sw", "se", "nw", "ne")  # in the order of rows
_LETTERS = ("s", "n", "w", "e"), ("d", "u", "l", "r")  # views only if four letters occur together
ACTIONS = (
    "stand", "standing", "idle", "step", "walk", "walking", "run", "running", "jump", "jumping", "fall", "attack",
    "attacking", "cast", "shoot", "hit", "hurt", "die", "dying", "death", "dead",
)  # fmt: skip
_POSES = ("stand", "standing", "step")  # frames of a walk: stand, step, stand2, step2
_COUNTERS = frozenset({"frame", "frames"})  # meaningless words before a frame's number
_TOKEN = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_SEPARATORS = " _-.,()[]+"
_TAGGED = (".ase", ".aseprite")
_PART = re.compile(
    rf"(.*?)({'|'.join(map(re.escape, sorted(DRAWING_SUFFIXES, key=len, reverse=True)))})(?:#(.*))?", re.I
)
_FRAME = re.compile(r"(?:frame\W*)?(\d+)", re.IGNORECASE)
_SAMPLE = 10_000  # names searched for single letters
_NUMBER = re.compile(r"(\d+)")
_TILE = re.compile(r"r(\d+) c(\d+)")


class SpriteName(NamedTuple):
    """A sprite's name in pieces. suffix: file suffix in lower case, with dot. part: name inside the file, or ''."""

    folders: tuple[str, ...]
    stem: str
    suffix: str
    part: str

    @classmethod
    def of(cls, name: str) -> SpriteName:
        """Split 'mon/orc.png#walk 2' at folders, suffix and part."""
        found = _PART.fullmatch(name)
        path, suffix, part = found.groups(default="") if found else (name, "", "")
        *folders, stem = path.split("/")
        return cls(tuple(folders), stem, suffix.lower(), part)

    @property
    def path(self) -> str:
        """The file's path without suffix."""
        return "/".join((*self.folders, self.stem))

    @property
    def tile(self) -> tuple[int, int] | None:
        """A tile's row and column in a grid, from 0; None for other sprites."""
        found = _TILE.fullmatch(self.part)
        return (int(found[1]) - 1, int(found[2]) - 1) if found else None


@dataclass(frozen=True)
class Words:
    """Words for cells, in lower case, in the order of rows and columns."""

    views: tuple[str, ...] = VIEWS
    actions: tuple[str, ...] = ACTIONS

    @classmethod
    def of(cls, rows: Sequence[str], columns: Sequence[str], names: Iterable[SpriteName]) -> Words:
        """Return the user's words, or the usual words. Single letters name views if `names` use all four letters."""
        views = tuple(row.lower() for row in rows)
        if not views:
            some = islice(names, _SAMPLE)
            used = {token.lower() for name in some for text in _texts(name) for token in _TOKEN.findall(text)}
            letters = [several for several in _LETTERS if used.issuperset(several)]
            views = (*VIEWS, *(letter for several in letters for letter in several))
        return cls(views, tuple(column.lower() for column in columns) or ACTIONS)

    def order(self, place: Place) -> tuple[object, ...]:
        """Return a cell's sort key: rows by `views`, then columns by `actions`, then frame numbers.

        Poses in a walk take turns: 'stand', 'step', 'stand2', 'step2'.
        """
        row = [
            self.views.index(word) if word in self.views else len(self.views)
            for word in (place.row.lower(), *place.row.lower().split("-"))
        ]
        action = place.column.rstrip("0123456789.")
        known = self.actions.index(action) if action in self.actions else len(self.actions)
        column: tuple[object, ...] = (known if action else -1, natural(place.column))
        if action in _POSES:
            poses = (self.actions.index(pose) for pose in _POSES if pose in self.actions)
            column = (min(poses, default=known), natural(place.column[len(action) :] or "1"), known)
        return row[0], len(row), row, natural(place.row), *column

    @cached_property
    def all(self) -> frozenset[str]:
        """The words for views and actions."""
        return frozenset((*self.views, *self.actions))

    @cached_property
    def hint(self) -> re.Pattern[str]:
        """A pattern for a quick test: occurs in every cell's name, and in few other names."""
        lower = [*self.all, *(letter for several in _LETTERS for letter in several)]
        alone = "|".join(re.escape(form) for word in lower for form in (word, word.upper()))
        after_others = "|".join(re.escape(word.title()) for word in lower)
        return re.compile(rf"(?<![A-Za-z])(?:{alone})(?![a-z])|(?:{after_others})(?![a-z])|\.ase(?:prite)?#")


def natural(text: str) -> list[tuple[int, str]]:
    """Return a sort key to place 'walk2' before 'walk10'."""
    pieces = ((piece, _plain(piece)) for piece in _NUMBER.split(text))
    return [(len(number), number) if piece.isdecimal() else (-1, piece) for piece, number in pieces]


def _plain(number: str) -> str:
    """Return digits without leading zeros."""
    return number.lstrip("0") or "0"


class _Found(NamedTuple):
    """Words for a cell in a text; the rest of the text names the set."""

    rest: str = ""
    views: Sequence[str] = ()
    actions: Sequence[str] = ()
    number: str = ""


def parse(
    name: SpriteName, words: Words, *, numbers_are_frames: bool = True, only_folders: bool = False
) -> Place | None:
    """Parse a sprite's name into a place; return None for a name without words for views or animations.

    numbers_are_frames: a number as file name means a frame, not a set. only_folders: ignore words in names of files and
    frames.
    """
    folders = [_find(folder, words) for folder in name.folders]
    folders = [one if not one.rest else _Found(folder) for one, folder in zip(folders, name.folders, strict=True)]
    stem = _Found(name.stem) if only_folders else _find(name.stem, words)
    if stem.rest.isdecimal() and numbers_are_frames and any(one.views or one.actions for one in folders):
        stem = _Found(number=_plain(stem.rest))
    part = [_Found(name.part)] if only_folders else _parts(name, words)
    found = [*folders, stem, *part]
    views = [view for one in found for view in one.views]
    actions = [action for one in found for action in one.actions]
    numbers = [one.number for one in found if one.number]
    key = "/".join(one.rest for one in found if one.rest)
    if not key or not (views or actions):
        return None
    action, number = "".join(actions), ".".join(numbers)
    return Place(key, "-".join(views), action + number) if views else Place(key, action, number)


def _parts(name: SpriteName, words: Words) -> Iterator[_Found]:
    """Yield the findings by part of a frame name. In Aseprite files, a tag names an animation.

    As for files, a numbered folder means a set: '2/down/step' belongs to set '2'.
    """
    *folders, last = name.part.split("/")
    for part in folders:
        yield _Found(part) if part.isdecimal() else _part(part, name, words)
    if last:
        yield _part(last, name, words)


def _part(part: str, name: SpriteName, words: Words) -> _Found:
    """Find the words for a cell in a part of a frame name."""
    if (counted := _FRAME.fullmatch(part)) is not None:
        return _Found(number=_plain(counted[1]))
    one = _find(part, words)
    if name.suffix in _TAGGED and one.rest:
        tag = one.rest.rstrip("0123456789").strip(_SEPARATORS)
        number = one.number or one.rest[len(one.rest.rstrip("0123456789")) :]
        one = _Found("", one.views, [*one.actions, *([] if tag.lower() in _COUNTERS else [tag])], number)
    return one


@lru_cache(maxsize=4096)  # folders recur
def _find(text: str, words: Words) -> _Found:
    """Find the words for a view and an animation in a text. A number behind such words means the frame."""
    if text.lower() in words.views:
        return _Found("", [text.lower()], [], "")
    views, actions, number, rest, end = list[str](), list[str](), "", list[str](), 0
    for token in _TOKEN.finditer(text):
        word = token[0].lower()
        is_frame = word.isdecimal() and bool(views or actions)
        if word not in words.all and not is_frame and not (word in _COUNTERS and end):
            continue
        rest.append(text[end : token.start()])
        end = token.end()
        if is_frame:
            number = f"{number}.{_plain(word)}" if number else _plain(word)
        elif word in words.views:
            views.append(word)
        elif word in words.actions:
            actions.append(word)
    rest.append(text[end:])
    return _Found("_".join(filter(None, (piece.strip(_SEPARATORS) for piece in rest))), views, actions, number)


def _texts(name: SpriteName) -> Collection[str]:
    return (*name.folders, name.stem, name.part)
