"""Figures on two legs: a head, clothes, arms and legs that swing against each other, and what is held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .cells import BACK, EMPTY, FRONT, LEFT, SIDE, SIZE, Grid, Part, blank, outline, part_off, shaded, stamp
from .hats import HATS
from .heads import BARE, BEARDS, FACES, HAIR, LEFT_FACES
from .items import SHIELDS, WEAPONS
from .masks import MASKS
from .outfits import CAPES, OUTFITS, SKIRTS

FLOOR = 14
"""The lowest painted row; the outline lies below it."""
MIDDLE = SIZE // 2
NECK, HIP = 9, 12
"""The rows of an adult's shoulders and hips, for which the clothes are drawn."""
HELD_FRONT, HELD_SIDE = 0, 12
"""The first column of a held thing."""


@dataclass(frozen=True)
class Build:
    """How a body is made: rows that the head sinks, the half width of the torso, and its rows."""

    sink: int = 0
    half: int = 3
    torso: int = 3
    burly: bool = False
    """Thick arms that hang clear of the torso."""


BUILDS = {
    "adult": Build(),
    "small": Build(sink=1, torso=2),
    "child": Build(sink=2, torso=2),
    "dwarf": Build(sink=2, half=4, torso=2),
    "stout": Build(half=4, torso=4),
    "giant": Build(sink=-1, half=4, torso=4, burly=True),
}


@dataclass(frozen=True)
class Person:
    """A figure on two legs, by the names of its parts."""

    build: str = "adult"
    face: str = "plain"
    hair: str = ""
    hat: str = ""
    mask: str = ""
    beard: str = ""
    outfit: str = "shirt"
    skirt: str = ""
    cape: str = ""
    weapon: str = ""
    shield: str = ""
    sleeves: str = "ccs"
    """Letters of an arm from the shoulder to the hand."""
    legwear: str = "llf"
    """Letters of a leg from the hip to the foot."""

    def cell(self, view: int, step: int, left: bool = False) -> Grid:
        """Draws one cell; step is 0 standing, 1 with the right arm forward, -1 with the left one; left faces left."""
        return _Drawing(self, view, step, left).drawn()


class _Drawing:
    """One cell of a person in the making. The side view is drawn facing right and turned at the end."""

    def __init__(self, person: Person, view: int, step: int, left: bool) -> None:
        self._person, self._view, self._step, self._left = person, view, step, left
        self._build = BUILDS[person.build]
        self._grid = blank()
        self._shoulder = NECK + self._build.sink + abs(step)
        self._hip = self._shoulder + self._build.torso
        self._drop = self._build.sink + abs(step)

    def drawn(self) -> Grid:
        """Lays the parts on the cell from the farthest to the nearest."""
        order = {
            FRONT: (self._cape, self._below, self._torso, self._arms, self._head, self._weapon, self._shield),
            BACK: (self._shield, self._weapon, self._below, self._torso, self._arms, self._cape, self._head),
            SIDE: (self._far_hand, self._cape, self._below, self._torso, self._head, self._near_hand),
        }
        for lay in order[self._view]:
            lay()
        outline(self._grid)
        return self._grid[:, ::-1] if self._left else self._grid

    def _lay(self, drawing: Part, dy: int = 0) -> None:
        """Lays a drawing where it ends above the feet."""
        top = drawing.top + self._drop + dy
        stamp(self._grid, drawing.views[self._view][: FLOOR - top], LEFT, top)

    def _head(self) -> None:
        person, before = self._person, self._grid.copy()
        if person.mask:
            self._lay(MASKS[person.mask])
        else:
            self._lay(BARE)
            self._lay((FACES | LEFT_FACES if self._left else FACES)[person.face])
        for name, drawings in ((person.beard, BEARDS), (person.hair, HAIR), (person.hat, HATS)):
            if name:
                self._lay(drawings[name])
        if self._build.burly:
            part_off(self._grid, np.asarray(self._grid != before))

    def _cape(self) -> None:
        if self._person.cape:
            self._lay(CAPES[self._person.cape])

    def _torso(self) -> None:
        """Clothes, stretched to the body's width and height; a long skirt loses rows instead."""
        person, build = self._person, self._build
        if person.skirt and person.skirt != "skirt":
            lines = list(SKIRTS[person.skirt].views[self._view])
            height = FLOOR - self._shoulder + int(person.skirt == "shroud")
            for number, line in enumerate([*lines[:1], *lines[len(lines) - height + 1 :]]):
                stamp(self._grid, (line,), LEFT, self._shoulder + number)
            if person.skirt == "shroud":
                self._tear()
            return
        top, middle, bottom = OUTFITS[person.outfit].views[self._view]
        width = 2 * build.half - int(self._view == SIDE)
        for number, line in enumerate((top, *(middle,) * (build.torso - 2), bottom)):
            stamp(self._grid, (_widened(line, width),), MIDDLE - build.half, self._shoulder + number)
        if person.skirt:
            self._lay(SKIRTS[person.skirt], build.torso - 3)

    def _tear(self) -> None:
        """Cuts a ragged hem, which a step moves."""
        for x in range(3 + self._step % 3, SIZE - 3, 3):
            self._grid[FLOOR, x] = EMPTY

    def _below(self) -> None:
        """Legs, or the feet under a long skirt."""
        if self._person.skirt in ("", "skirt"):
            (self._side_legs if self._view == SIDE else self._legs)()
        elif self._person.skirt != "shroud":
            self._feet()

    def _legs(self) -> None:
        """Both legs from the front or from behind; the one that steps is lifted and in the shade."""
        half, wear = self._build.half, self._person.legwear
        width = 2 if half < 4 else 3
        for side in (-1, 1):
            lifted = self._step == -side
            start = MIDDLE - half if side < 0 else MIDDLE + half - width
            for y in range(self._hip, FLOOR + 1 - int(lifted)):
                is_foot = y == FLOOR - int(lifted)
                letter = wear[-1] if is_foot else wear[min(y - self._hip, len(wear) - 2)]
                self._grid[y, start : start + width] = shaded(letter) if is_foot and lifted else letter
        if self._hip < FLOOR - 1:
            self._grid[self._hip, MIDDLE - half : MIDDLE + half] = wear[0]

    def _side_legs(self) -> None:
        half, wear = max(self._build.half - 1, 2), self._person.legwear
        left, right, foot = MIDDLE - half, MIDDLE + half - 1, wear[-1]
        for y in range(self._hip, FLOOR):
            letter = wear[min(y - self._hip, len(wear) - 2)]
            if not self._step:
                self._grid[y, left : right + 1] = letter
                self._grid[y, left] = shaded(letter)
                continue
            spread = y - self._hip
            self._grid[y, left - spread : MIDDLE] = letter if self._step > 0 else shaded(letter)
            self._grid[y, MIDDLE : right + 1 + spread] = letter if self._step < 0 else shaded(letter)
        if not self._step:
            self._grid[FLOOR, left : right + 2] = foot
            return
        heel, toe = (foot, shaded(foot)) if self._step > 0 else (shaded(foot), foot)
        if self._step > 0:  # the near foot leaves the ground, the far one lies flat
            self._grid[FLOOR, left - 1 : left + 1] = heel
            self._grid[FLOOR - 1, left - 2 : left] = heel
            self._grid[FLOOR, right : right + 3] = toe
        else:  # the near foot lands on its heel
            self._grid[FLOOR, left - 2 : left + 1] = heel
            self._grid[FLOOR, right : right + 2] = toe
            self._grid[FLOOR - 1, right + 1 : right + 3] = toe

    def _feet(self) -> None:
        """Toes below a hem: both, or the one that comes forward."""
        foot = self._person.legwear[-1]
        if self._view == SIDE:
            self._grid[FLOOR, MIDDLE - 1 : MIDDLE + 3] = foot
            if self._step:
                self._grid[FLOOR] = EMPTY
                back, ahead = (MIDDLE - 4, MIDDLE + 1) if self._step > 0 else (MIDDLE - 3, MIDDLE + 2)
                self._grid[FLOOR, back : back + 2] = foot if self._step > 0 else shaded(foot)
                self._grid[FLOOR, ahead : ahead + 3] = foot if self._step < 0 else shaded(foot)
            return
        for side in (-1, 1):
            if self._step != -side:
                start = MIDDLE - 3 if side < 0 else MIDDLE + 1
                self._grid[FLOOR, start : start + 2] = foot

    def _arms(self) -> None:
        """Both arms beside the torso: the forward one lower, the other drawn back; a hand that holds is held out."""
        right = -1 if self._view == FRONT else 1
        thick, half = (2, self._build.half + 1) if self._build.burly else (1, self._build.half)
        if self._build.burly:
            self._grid[self._shoulder, MIDDLE - half : MIDDLE + half] = self._sleeve(0, False, dark=False)
        for side in (-1, 1):
            holds = bool(self._person.weapon) and side == right and thick < 2
            bottom = self._shoulder + max(self._build.torso, 3) - 1 - int(self._step == -side * right or holds)
            first = MIDDLE - half - thick if side < 0 else MIDDLE + half
            for y in range(self._shoulder, bottom + 1):
                self._grid[y, first : first + thick] = self._sleeve(y - self._shoulder, y == bottom, dark=side > 0)
            if holds:
                hand = first + side
                self._grid[bottom, min(hand, first) : max(hand, first) + 1] = self._person.sleeves[-1]
                self._grid[bottom, first] = self._sleeve(1, False, dark=side > 0)

    def _sleeve(self, number: int, is_hand: bool, dark: bool) -> str:
        sleeves = self._person.sleeves
        letter = sleeves[-1] if is_hand else sleeves[min(number, len(sleeves) - 2)]
        return shaded(letter) if dark and not is_hand else letter

    def _near_hand(self) -> None:
        self._hand(1 if not self._left else -1, near=True)

    def _far_hand(self) -> None:
        self._hand(-1 if not self._left else 1, near=False)

    def _hand(self, side: int, near: bool) -> None:
        """An arm seen from the side, with what it holds: straight down, ahead or behind; the right side is 1."""
        if side > 0 and self._person.weapon:
            self._reach()
            self._weapon()
            return
        if side < 0 and self._person.shield:
            self._shield()
            return
        swing = self._step if near else -self._step
        if not near and not swing:
            return
        reach = max(self._build.torso, 3)
        for number in range(reach):
            is_hand = number == reach - 1
            x = MIDDLE - 1 + swing * (number + int(is_hand))
            y = self._shoulder + number - int(is_hand and bool(swing))
            self._grid[y, x : x + 2] = self._sleeve(number, is_hand, dark=True)

    def _reach(self) -> None:
        """An arm held out ahead."""
        y = self._shoulder + 1
        self._grid[self._shoulder, MIDDLE - 1 : MIDDLE + 1] = self._sleeve(0, False, dark=True)
        self._grid[y, MIDDLE - 1 : HELD_SIDE - 1] = self._sleeve(1, False, dark=True)
        self._grid[y, HELD_SIDE - 1 : HELD_SIDE + 1] = self._person.sleeves[-1]

    def _weapon(self) -> None:
        if not self._person.weapon:
            return
        drawing = WEAPONS[self._person.weapon]
        rows = drawing.views[0]
        left = {FRONT: HELD_FRONT, BACK: SIZE - HELD_FRONT - 3, SIDE: HELD_SIDE}[self._view]
        if self._view != FRONT:
            rows = tuple(row[::-1] for row in rows)
        bottom = FLOOR + 1 - drawing.top - self._drop
        painted = stamp(self._grid, rows[:bottom], left, drawing.top + self._drop)
        part_off(self._grid, painted)

    def _shield(self) -> None:
        if not self._person.shield:
            return
        drawing = SHIELDS[self._person.shield]
        left = {FRONT: 10, BACK: 2, SIDE: 9 if not self._left else 7}[self._view]
        part_off(self._grid, stamp(self._grid, drawing.views[0], left, drawing.top + self._drop))


def _widened(line: str, width: int) -> str:
    """A row of clothes that takes a width: the columns next to its edges are repeated."""
    core = line.strip(".")
    lacks = width - len(core)
    return core[:1] + core[1] * (lacks // 2) + core[1:-1] + core[-2] * (lacks - lacks // 2) + core[-1:]
