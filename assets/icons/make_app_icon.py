"""Draws the program's own icon from one pixel grid: app.svg, and from that app.ico, app.icns and app.png."""

from __future__ import annotations

import sys
from pathlib import Path

from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

OUT = Path(__file__).resolve().parent
SIDE = 256
# Pixels of each picture: whole multiples of the grid, or its cells would be of uneven width.
ICO_SIDES = (16, 32, 48, 64, 128, 256)
ICNS_SIDES = (16, 32, 64, 128, 256, 512, 1024)
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


def rendered(side: int) -> Image.Image:
    """app.svg as RGBA of `side` by `side` pixels."""
    image = QImage(side, side, QImage.Format.Format_RGBA8888)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(str(OUT / "app.svg")).render(painter)
    painter.end()
    return Image.frombytes("RGBA", (side, side), bytes(image.constBits()))


def main() -> None:
    """Writes all four files."""
    write_svg()
    pictures = {side: rendered(side) for side in sorted({*ICO_SIDES, *ICNS_SIDES})}
    pictures[SIDE].save(OUT / "app.png", optimize=True)
    ico, icns = [pictures[side] for side in ICO_SIDES], [pictures[side] for side in ICNS_SIDES]
    ico[-1].save(OUT / "app.ico", sizes=[picture.size for picture in ico], append_images=ico[:-1])
    icns[-1].save(OUT / "app.icns", append_images=icns[:-1])
    sys.stdout.write(f"app.svg, app.png, app.ico and app.icns written to {OUT}\n")


if __name__ == "__main__":
    main()
