"""Draws the program's own icon from one pixel grid: app.svg of rectangles and app.png of 256 by 256 pixels."""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image, ImageDraw

OUT = Path(__file__).resolve().parent
SIDE = 256
GROUND = "#2a2748"
COLOURS = {
    "a": "#12303f",
    "b": "#1d5673",
    "c": "#239194",
    "d": "#4dceae",
    "e": "#b6f5d0",
    "k": "#211f38",
    "w": "#fffbec",
    "m": "#962a70",
    "y": "#fad552",
    "h": "#fff6b3",
}
GRID = (
    "................",
    "............y...",
    "...........yhy..",
    ".....aaaaaa.y...",
    "...aaddddddaa...",
    "..addeedddddca..",
    ".addeeddddddcca.",
    ".adeddddddddcca.",
    ".addwkddddwkcca.",
    ".addkkddddkkcca.",
    ".addkkddddkkcba.",
    ".acddddmmddccba.",
    ".accddddddcccba.",
    ".abccccccccbbba.",
    "..aaaaaaaaaaaa..",
    "................",
)
CELL = SIDE // len(GRID)


def runs() -> list[tuple[int, int, int, str]]:
    """Stretches of one colour as column, row, length and colour: fewer rectangles, and no seams inside them."""
    found: list[tuple[int, int, int, str]] = []
    for y, row in enumerate(GRID):
        x = 0
        while x < len(row):
            length = len(row[x:]) - len(row[x:].lstrip(row[x]))
            if row[x] in COLOURS:
                found.append((x, y, length, COLOURS[row[x]]))
            x += length
    return found


def write_svg() -> None:
    """The icon as crisp rectangles."""
    size = len(GRID)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{SIDE}" height="{SIDE}" '
        'shape-rendering="crispEdges">',
        f'  <rect width="{size}" height="{size}" rx="3" fill="{GROUND}" shape-rendering="geometricPrecision"/>',
        *(f'  <rect x="{x}" y="{y}" width="{n}" height="1" fill="{colour}"/>' for x, y, n, colour in runs()),
        "</svg>",
    ]
    (OUT / "app.svg").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def write_png() -> None:
    """The icon as pixels; only the corners of the ground are smoothed."""
    ground = Image.new("RGBA", (SIDE * 4, SIDE * 4), (0, 0, 0, 0))
    ImageDraw.Draw(ground).rounded_rectangle((0, 0, SIDE * 4 - 1, SIDE * 4 - 1), 3 * CELL * 4, fill=GROUND)
    icon = ground.resize((SIDE, SIDE), Image.Resampling.LANCZOS)
    draw = ImageDraw.Draw(icon)
    for x, y, length, colour in runs():
        draw.rectangle((x * CELL, y * CELL, (x + length) * CELL - 1, (y + 1) * CELL - 1), fill=colour)
    icon.save(OUT / "app.png", optimize=True)


def main() -> None:
    """Writes both files."""
    write_svg()
    write_png()
    sys.stdout.write(f"app.svg and app.png written to {OUT}\n")


if __name__ == "__main__":
    main()
