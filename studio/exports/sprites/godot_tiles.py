"""Save a tile set as a Godot 4 TileSet: an atlas with terrains, and on request a collision shape for each tile.

While loading, Godot clears terrains of tiles if the terrain set comes later. The terrain set therefore stands before
the atlas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from studio.data.tiles.tile_set import ANY, CENTRE, TileKind
from studio.exports.provenance_note import add_checksum
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.godot_text import note_lines, quoted, read_note
from studio.exports.sprites.tile_sheet import TileSheet

Point = tuple[int, int]

_MODES: dict[TileKind, int] = {"blob": 0, "corner": 1, "dual-grid": 1, "edge": 2}  # TileSet.TerrainMode
_BITS = {
    0: "top_left_corner", 1: "top_side", 2: "top_right_corner", 3: "left_side", 5: "right_side",
    6: "bottom_left_corner", 7: "bottom_side", 8: "bottom_right_corner",
}  # fmt: skip
_SOLID_ALPHA = 128  # a pixel of this alpha or more collides


class GodotTiles(SpriteExport):
    name = "godot_tiles"
    title = "Godot tile set (.tres and PNG)"
    suffix = ".tres"
    companions = (".png",)
    help = "For Godot 4: a TileSet with terrains and its sheet. Keep the two files together."
    order = 21
    saves_tiles = True
    has_note = True
    collides: ClassVar[bool] = False  # whether tiles have collision shapes

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        plan = TileSheet.of(sprites)
        sheet = target.with_suffix(self.companions[0])
        lines = [
            '[gd_resource type="TileSet" load_steps=3 format=3]',
            "",
            f'[ext_resource type="Texture2D" path={quoted(sheet.name)} id="1"]',
            "",
            '[sub_resource type="TileSetAtlasSource" id="Tiles"]',
            'texture = ExtResource("1")',
            f"texture_region_size = Vector2i({plan.size}, {plan.size})",
        ]
        for number, (x, y) in enumerate(plan.grid.positions()):
            start = f"{x // plan.size}:{y // plan.size}/0"
            lines += [f"{start} = 0", *(f"{start}/{line}" for line in self._tile(plan, number))]
        lines += ["", "[resource]", f"tile_size = Vector2i({plan.size}, {plan.size})"]
        if self.collides:
            lines.append("physics_layer_0/collision_layer = 1")
        lines += [*_terrain_set(plan), 'sources/0 = SubResource("Tiles")', *note_lines(sprites.about), ""]
        return {target: add_checksum("\n".join(lines).encode()), sheet: plan.picture}

    def _tile(self, plan: TileSheet, number: int) -> list[str]:
        """Return the properties of a tile: terrains, probability and collision shape."""
        points, lines = plan.points[number].tolist(), list[str]()
        if set(points) != {ANY}:
            lines.append("terrain_set = 0")  # before the terrains
            if points[CENTRE] != ANY:
                lines.append(f"terrain = {points[CENTRE]}")
            lines += [
                f"terrains_peering_bit/{bit} = {points[place]}" for place, bit in _BITS.items() if points[place] != ANY
            ]
        weight = float(plan.tile_set.weights[number])
        if weight != 1:
            lines.append(f"probability = {weight:.6g}")
        if self.collides:
            for polygon, outline in enumerate(outlines(plan.tile_set.tiles[number, ..., 3] >= _SOLID_ALPHA)):
                lines.append(f"physics_layer_0/polygon_{polygon}/points = {_points(outline, plan.size)}")
        return lines

    def note_in(self, data: bytes) -> str:
        return read_note(data)


class GodotTilesWithCollisions(GodotTiles):
    name = "godot_collisions"
    title = "Godot tile set with collisions (.tres and PNG)"
    help = "For Godot 4: a TileSet with terrains, where opaque pixels collide, and its sheet. Keep both files together."
    order = 22
    collides = True

    def notes(self, sprites: SpriteSet) -> tuple[str, ...]:
        if (sprites.sprites[..., 3] >= _SOLID_ALPHA).all():
            return ("Every tile collides as a whole: no tile has transparent pixels.",)
        return ()


def _terrain_set(plan: TileSheet) -> list[str]:
    """Return the properties of the terrain set: its mode, and the name and colour of each terrain."""
    lines = [f"terrain_set_0/mode = {_MODES[plan.tile_set.kind]}"]
    for number, name in enumerate(plan.terrains):
        colour = ", ".join(f"{level / 255:.6g}" for level in plan.colours[number])
        lines.append(f"terrain_set_0/terrain_{number}/name = {quoted(name)}")
        lines.append(f"terrain_set_0/terrain_{number}/color = Color({colour}, 1)")
    return lines


def _points(outline: Sequence[Point], size: int) -> str:
    """Return a polygon in pixels from the tile's centre."""
    return "PackedVector2Array({})".format(", ".join(f"{x - size / 2:g}, {y - size / 2:g}" for x, y in outline))


def outlines(solid: NDArray[np.bool_]) -> list[list[Point]]:
    """Return polygons (x, y) of pixel corners around the parts of `solid`, bool [H, W], clockwise; holes are filled.

    A polygon visits no point twice: game engines reject polygons that touch themselves.
    """
    edges: dict[Point, list[Point]] = {}  # by start point, the ends of its edges; the solid pixel is on the right
    padded = np.pad(solid, 1)
    for dy, dx, start, end in (
        (-1, 0, (0, 0), (1, 0)), (0, 1, (1, 0), (1, 1)), (1, 0, (1, 1), (0, 1)), (0, -1, (0, 1), (0, 0)),
    ):  # fmt: skip
        beside = np.roll(padded, (-dy, -dx), (0, 1))[1:-1, 1:-1]
        for y, x in np.argwhere(solid & ~beside).tolist():
            edges.setdefault((x + start[0], y + start[1]), []).append((x + end[0], y + end[1]))
    return [_turns(loop) for loop in _loops(edges) if _area(loop) > 0]  # loops of negative area surround holes


def _loops(edges: dict[Point, list[Point]]) -> Iterator[list[Point]]:
    """Join the edges into closed loops; cut a loop off where it returns to an earlier point."""
    while edges:
        path = [next(iter(edges))]
        while path[-1] in edges:
            ends = edges[path[-1]]
            end = ends.pop()
            if not ends:
                del edges[path[-1]]
            if end in path:
                yield path[path.index(end) :]
                del path[path.index(end) + 1 :]
            else:
                path.append(end)


def _turns(loop: list[Point]) -> list[Point]:
    """Return the points at which a loop turns."""
    steps = [(next_x - x, next_y - y) for (x, y), (next_x, next_y) in zip(loop, loop[1:] + loop[:1], strict=True)]
    return [point for number, point in enumerate(loop) if steps[number] != steps[number - 1]]


def _area(loop: list[Point]) -> int:
    """Return twice the area inside a clockwise loop, in pixels; negative for an anticlockwise loop."""
    return sum(x * next_y - next_x * y for (x, y), (next_x, next_y) in zip(loop, loop[1:] + loop[:1], strict=True))
