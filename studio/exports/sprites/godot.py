"""Save sprites as Godot 4 SpriteFrames (for AnimatedSprite2D) with a sheet, an animation per class or per view.

The resource names the sheet without a folder, so that Godot finds it next to the resource in any folder.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from studio.exports.png import encode_png
from studio.exports.provenance_note import add_checksum
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.cells import free_label
from studio.exports.sprites.godot_text import note_lines, quoted, read_note
from studio.exports.sprites.sheet_plan import SheetPlan

_UNNAMED = "default"  # Godot's name for the first animation


class GodotFrames(SpriteExport):
    name = "godot"
    title = "Godot sprite frames (.tres and PNG)"
    suffix = ".tres"
    companions = (".png",)
    help = "For Godot 4: a sheet and its SpriteFrames, an animation per class or view. Keep the two files together."
    order = 4
    has_note = True

    def contents(self, sprites: SpriteSet, target: Path) -> Mapping[Path, bytes]:
        plan = SheetPlan.of(sprites)
        grid = plan.grid
        sheet = target.with_suffix(self.companions[0])
        head = f'[gd_resource type="SpriteFrames" load_steps={len(plan.names) + 2} format=3]'
        lines = [head, "", f'[ext_resource type="Texture2D" path={quoted(sheet.name)} id="1"]', ""]
        for number, ((x, y), name) in enumerate(zip(grid.positions(), plan.paths(), strict=True)):
            lines += [
                f'[sub_resource type="AtlasTexture" id="AtlasTexture_{number}"]',
                f"resource_name = {quoted(name)}",
                'atlas = ExtResource("1")',
                f"region = Rect2({x}, {y}, {grid.width}, {grid.height})",
                "",
            ]
        lines += [
            "[resource]",
            f"animations = [{', '.join(_animations(sprites, plan))}]",
            *note_lines(sprites.about),
            "",
        ]
        picture = plan.picture(sprites.sprites)
        return {target: add_checksum("\n".join(lines).encode()), sheet: encode_png(picture, sprites.about)}

    def note_in(self, data: bytes) -> str:
        return read_note(data)


def _animations(sprites: SpriteSet, plan: SheetPlan) -> list[str]:
    """Return an animation per class, or with cells per row, in Godot's dictionary notation.

    Frame durations are relative to duration_ms.
    """
    durations = plan.durations_ms
    groups: Iterable[tuple[str, Iterable[int]]] = sprites.by_class().items()
    if sprites.cells is not None:
        groups = [(label, range(first, last + 1)) for label, first, last in plan.tags]
    loops = sprites.is_animation or sprites.cells is not None
    found: dict[str, str] = {}
    for label, indices in groups:
        name = _free_name(label, found)
        frames = [
            f'{{\n"duration": {round(durations[index] / sprites.duration_ms, 6)},\n'
            f'"texture": SubResource("AtlasTexture_{index}")\n}}'
            for index in indices
        ]
        found[name] = (
            f'{{\n"frames": [{", ".join(frames)}],\n"loop": {str(loops).lower()},\n'
            f'"name": &{quoted(name)},\n"speed": {round(1000 / sprites.duration_ms, 6)}\n}}'
        )
    return list(found.values())


def _free_name(label: str, used: Collection[str]) -> str:
    """Return an unused animation name without slashes and commas, which Godot's editor rejects."""
    return free_label(re.sub(r"[/,]", "_", label) or _UNNAMED, used)
