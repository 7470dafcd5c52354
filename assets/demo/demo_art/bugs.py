"""Bugs seen from above: beetles, ladybirds, spiders, bees and butterflies, all about one middle column."""

from __future__ import annotations

from numpy.random import Generator

from .canvas import Canvas, Key, chance, pick
from .palette import BRIGHT, Ramp
from .shapes import art, empty, line, mirror, rows

SIZE = 20
AXIS = SIZE // 2 - 1
SHELLS = {
    "oval": (3, 4, 5, 5, 5, 5, 5, 4, 3),
    "round": (3, 4, 5, 6, 6, 6, 6, 5, 4, 3),
    "long": (3, 4, 4, 4, 4, 4, 4, 4, 3, 2),
    "pear": (2, 3, 4, 5, 5, 6, 6, 5, 4, 2),
    "pointed": (4, 5, 5, 5, 5, 4, 4, 3, 2, 1),
}
HORNS: tuple[tuple[str, ...], ...] = (
    ("#..", "#..", "##.", ".##"),
    (".##", "##.", "#..", ".##"),
    ("#.", "##", ".#"),
    ("#..", ".#.", "..#"),
    (".#.", "#..", "#..", ".##"),
)
# Left wings of butterflies: 'a' ground, 'b' band, 's' eye spot, 'd' edge of the lower wing.
BUTTERFLIES: tuple[tuple[str, ...], ...] = (
    (
        "aaa....",
        "abbaa..",
        "absbba.",
        "abbbbaa",
        ".abbbaa",
        "..aabba",
        ".aabbaa",
        "aabsba.",
        "aabbba.",
        ".aaba..",
        "..aa...",
    ),
    (
        ".aaa...",
        "aabbaa.",
        "abssbba",
        "abssbba",
        "aabbbaa",
        ".aaaaaa",
        "..dddda",
        ".dbbbda",
        ".dbsbd.",
        "..dbd..",
        "..dd...",
        "..d....",
    ),
    (
        "aa.....",
        "abaa...",
        "abbbaa.",
        ".abbbba",
        ".aabsba",
        "..abbba",
        "...aaaa",
        "..dbbda",
        ".dbbbd.",
        ".dbbd..",
        ".ddd...",
    ),
    (
        "..aaa..",
        ".abbbaa",
        "abbsbba",
        "abbbbba",
        "abbbbba",
        ".aabbaa",
        ".ddaada",
        "ddbbdda",
        "dbsbdd.",
        "ddbbd..",
        ".ddd...",
    ),
)
BEE_WINGS: tuple[tuple[str, ...], ...] = (
    (".ww..", "wwww.", "wvwww", "wvvww", ".wvv.", "..v.."),
    ("ww...", "wwww.", "wvwww", ".vvww", "..vv."),
    ("..www", ".wwww", "wwvww", "wvvw.", "wvv..", ".v..."),
)


def _legs(canvas: Canvas, rng: Generator, top: int, ramp: Ramp, reach: int) -> None:
    """Three bent pairs, too thin for an outline of their own."""
    bend = int(rng.integers(2))
    legs = empty(SIZE)
    for pair, (y, drop) in enumerate(((top, -2), (top + 3, 0), (top + 6, 2))):
        knee = AXIS - reach + (1 if pair == 1 else bend)
        legs |= line(SIZE, ((AXIS - 2, y), (knee, y + drop // 2), (max(knee - 1, 1), y + drop)))
    canvas.behind(mirror(legs, odd=True), ramp, 0)


def _shell_marks(canvas: Canvas, rng: Generator, top: int, height: int, ramp: Ramp) -> None:
    """Spots, bands or plain metal on the wing cases."""
    mark = pick(rng, [r for r in (Ramp.SLATE, Ramp.GOLD, Ramp.RED, Ramp.TEAL, Ramp.BONE) if r != ramp])
    tone = 0 if mark == Ramp.SLATE else 2
    key: Key = {"#": (mark, tone)}
    style = int(rng.integers(6))
    if style == 0:
        canvas.stamp_pair(("##", "##"), AXIS - 4, top + 2, key, odd=True)
        canvas.stamp_pair(("##", "##"), AXIS - 3, top + 6, key, odd=True)
    elif style == 1:
        canvas.stamp_pair(("#.", "##", ".#"), AXIS - 3, top + 3, key, odd=True)
    elif style == 2:
        for y in range(top + 2, top + height - 1, 3):
            band = canvas.painted & (canvas.ramp == ramp)
            band[:y], band[y + 1 :] = False, False
            canvas.recolour(band, mark)
            canvas.tone[band & (canvas.tone > 2)] = 2
    elif style == 3:
        canvas.stamp_pair(("##", "##"), AXIS - 3, top + 4, key, odd=True)


def _beetle(canvas: Canvas, rng: Generator) -> None:
    """Head, neck shield and two wing cases."""
    ramp = pick(rng, (*BRIGHT, Ramp.STEEL, Ramp.WOOD))
    front = pick(rng, (ramp, Ramp.SLATE, Ramp.SLATE, Ramp.WOOD, Ramp.GOLD))
    halves = list(SHELLS[pick(rng, list(SHELLS))])
    if len(halves) < 10 and chance(rng, 0.4):
        halves.insert(4, halves[4])
    horn = pick(rng, HORNS)
    top = 17 - len(halves) + 1
    horn = horn[-max(0, top - 5) :]
    canvas.stamp_pair(horn, AXIS - len(horn[0]), top - 3 - len(horn), {"#": (front, 1)}, odd=True)
    canvas.form(rows(SIZE, top - 4, (1, 2, 2), odd=True), front, high=3)
    neck = rows(SIZE, top - 2, (halves[0], min(halves[0] + 1, halves[1])), odd=True)
    canvas.seam(neck)
    canvas.form(neck, front)
    shell = rows(SIZE, top, halves, odd=True)
    canvas.seam(shell)
    canvas.form(shell, ramp)
    _shell_marks(canvas, rng, top, len(halves), ramp)
    if not chance(rng, 0.15):
        canvas.tone[top:18, AXIS][canvas.painted[top:18, AXIS]] = 0
    eye = pick(rng, (Ramp.RED, Ramp.GOLD, Ramp.BONE))
    canvas.stamp_pair(("e",), AXIS - 2, top - 3, {"e": (eye, 3)}, odd=True)
    canvas.outline()
    _legs(canvas, rng, top, front, 7 if max(halves) < 6 else 8)


def _spider(canvas: Canvas, rng: Generator) -> None:
    """Two round parts, eight legs and a mark on the back."""
    ramp = pick(rng, (Ramp.SLATE, Ramp.WOOD, Ramp.RED, Ramp.PURPLE, Ramp.GREEN, Ramp.ORANGE, Ramp.BLUE, Ramp.STEEL))
    halves = pick(rng, ((2, 4, 4, 5, 5, 4, 3), (2, 3, 4, 4, 4, 3, 2), (3, 4, 4, 4, 3), (2, 4, 5, 4, 4, 3, 2, 1)))
    top = 10
    head = rows(SIZE, top - 5, pick(rng, ((1, 2, 3, 3, 2), (2, 3, 3, 2, 2), (2, 2, 2, 2, 2))), odd=True)
    canvas.form(head, ramp)
    back = rows(SIZE, top, halves, odd=True)
    canvas.seam(back)
    canvas.form(back, ramp)
    mark = pick(rng, [r for r in (Ramp.RED, Ramp.GOLD, Ramp.BONE, Ramp.GREEN, Ramp.PINK) if r != ramp])
    drawing = pick(
        rng,
        (
            ("###", ".#.", "###"),
            ("..#..", ".###.", "..#.."),
            ("#.#", "###", ".#."),
            (".###.", "#.#.#", ".###."),
            ("#", "#", "#", "#"),
            ("#...#", ".#.#.", "#...#"),
            (),
        ),
    )
    if drawing:
        canvas.stamp(drawing, AXIS - len(drawing[0]) // 2, top + 2, {"#": (mark, 3)})
    eyes = pick(rng, (("e",), ("e", "e"), ("e.", ".e")))
    canvas.stamp_pair(eyes, AXIS - len(eyes[0]), top - 4, {"e": (mark, 4)}, odd=True)
    canvas.stamp_pair(("f",), AXIS - 1, top - 6, {"f": (ramp, 3)}, odd=True)
    canvas.outline()
    legs = empty(SIZE)
    spread = int(rng.integers(2))
    paths = (
        ((2, -3), (5, -6), (4, -9 + spread)),
        ((2, -2), (7, -4), (8, -7)),
        ((2, -1), (7, 0), (8, 3)),
        ((2, 0), (6, 4), (6 + spread, 8)),
    )
    for path in paths:
        legs |= line(SIZE, [(AXIS - x, top + y) for x, y in path])
    canvas.behind(mirror(legs, odd=True), ramp, 0)


def _bee(canvas: Canvas, rng: Generator) -> None:
    """A striped body under glassy wings."""
    ramp = pick(rng, (Ramp.GOLD, Ramp.GOLD, Ramp.ORANGE, Ramp.GREEN, Ramp.PINK, Ramp.BLUE, Ramp.TEAL, Ramp.RED))
    halves = pick(rng, ((2, 3, 4, 4, 4, 3, 2, 1), (2, 3, 3, 3, 3, 2, 2, 1, 0), (3, 4, 5, 5, 4, 4, 2)))
    top = 17 - len(halves)
    wings = pick(rng, BEE_WINGS)
    glass = pick(rng, (Ramp.STEEL, Ramp.BLUE, Ramp.BONE))
    sheen: Key = {"w": (glass, 4), "v": (glass, 3)}
    canvas.stamp_pair(wings, AXIS - 2 - len(wings[0]), top - 4 + int(rng.integers(2)), sheen, odd=True)
    chest = rows(SIZE, top - 3, (2, 3, 2), odd=True)
    body = rows(SIZE, top, halves, odd=True)
    canvas.seam(chest | body)
    canvas.form(chest, pick(rng, (Ramp.WOOD, ramp, Ramp.SLATE)))
    canvas.form(body, ramp)
    step = pick(rng, (2, 3))
    for y in range(top + 1, top + len(halves), step):
        band = body.copy()
        band[:y], band[y + 1 :] = False, False
        canvas.tone[band] = 0
        canvas.ramp[band] = Ramp.SLATE
    head = rows(SIZE, top - 6, (1, 2), odd=True)
    canvas.seam(head)
    canvas.form(head, Ramp.SLATE, low=2)
    canvas.stamp_pair(("e",), AXIS - 2, top - 5, {"e": (pick(rng, (Ramp.RED, Ramp.BONE)), 3)}, odd=True)
    canvas.outline()
    canvas.behind(mirror(line(SIZE, ((AXIS - 1, top - 7), (AXIS - 3, top - 8))), odd=True), Ramp.SLATE, 0)
    canvas.behind(line(SIZE, ((AXIS, 17), (AXIS, 18))), Ramp.SLATE, 0)


def _butterfly(canvas: Canvas, rng: Generator) -> None:
    """Four patterned wings about a thin body."""
    ground = pick(rng, (*BRIGHT, Ramp.BONE, Ramp.SLATE))
    band = pick(rng, [r for r in (*BRIGHT, Ramp.BONE) if r != ground])
    spot = pick(rng, (Ramp.BONE, Ramp.GOLD, Ramp.SLATE, Ramp.PINK))
    lower = ground if chance(rng, 0.6) else pick(rng, BRIGHT)
    drawing = pick(rng, BUTTERFLIES)
    top = 4 + int(rng.integers(2))
    key: Key = {"a": (ground, 2), "b": (band, 3), "s": (spot, 4 if spot != Ramp.SLATE else 0), "d": (lower, 2)}
    canvas.stamp_pair(drawing, AXIS - 7, top, key, odd=True)
    upper = art(SIZE, [row.replace("a", "#") for row in drawing], AXIS - 7, top)
    sunny = upper & ~art(SIZE, [row.replace("a", "#") for row in drawing], AXIS - 7, top + 1)
    canvas.tone[sunny & (canvas.ramp == ground) & (canvas.tone == 2)] = 3
    shade = canvas.painted & (canvas.tone >= 2)
    shade[: top + 5] = False
    shade[:, : AXIS + 1] = False
    canvas.tone[shade & (canvas.ramp != spot)] -= 1
    body = rows(SIZE, top + 1, (0, 1, 1, 0, 0, 0, 0, 0, 0), odd=True)
    canvas.seam(body, 1)
    canvas.flat(body, Ramp.WOOD, 1)
    canvas.flat(line(SIZE, ((AXIS, top + 2), (AXIS, top + 6))), Ramp.WOOD, 3)
    canvas.outline()
    feeler = line(SIZE, ((AXIS - 1, top), (AXIS - 2, top - 2), (AXIS - 3, top - 3)))
    canvas.behind(mirror(feeler, odd=True), Ramp.WOOD, 0)


def draw(rng: Generator) -> Canvas:
    """One bug."""
    canvas = Canvas(SIZE)
    pick(rng, (_beetle, _beetle, _spider, _bee, _butterfly))(canvas, rng)
    return canvas
