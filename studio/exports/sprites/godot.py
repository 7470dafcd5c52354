"""Save sprites as Godot 4 SpriteFrames (for AnimatedSprite2D) with a sheet, an animation per class or per view.

The resource names the sheet without a folder, so that Godot finds it next to the resource in any folder.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from studio.exports.png import encode_png
from studio.exports.provenance_note import add_checksum, format_note
from studio.exports.sprites.base import SpriteExport, SpriteSet
from studio.exports.sprites.cells import free_label
from studio.exports.sprites.sheet_plan import SheetPlan

_NOTE_KEY = "metadata/note = "
_NOTE = re.compile(rf'^{_NOTE_KEY}"((?:[^"\\\n]|\\.)*)"', re.MULTILINE)
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
        lines = [head, "", f'[ext_resource type="Texture2D" path={_quoted(sheet.name)} id="1"]', ""]
        for number, ((x, y), name) in enumerate(zip(grid.positions(), plan.paths(), strict=True)):
            lines += [
                f'[sub_resource type="AtlasTexture" id="AtlasTexture_{number}"]',
                f"resource_name = {_quoted(name)}",
                'atlas = ExtResource("1")',
                f"region = Rect2({x}, {y}, {grid.width}, {grid.height})",
                "",
            ]
        lines += ["[resource]", f"animations = [{', '.join(_animations(sprites, plan))}]", *_note(sprites.about), ""]
        picture = plan.picture(sprites.sprites)
        return {target: add_checksum("\n".join(lines).encode()), sheet: encode_png(picture, sprites.about)}

    def note_in(self, data: bytes) -> str:
        found = _NOTE.search(data.decode("utf-8", "replace"))
        return re.sub(r"\\(.)", lambda pair: "\n" if pair[1] == "n" else pair[1], found[1]) if found else ""


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
            f'"name": &{_quoted(name)},\n"speed": {round(1000 / sprites.duration_ms, 6)}\n}}'
        )
    return list(found.values())


def _note(about: Mapping[str, object]) -> list[str]:
    """Return the metadata line of the resource, which stores `about` as a note; empty without `about`."""
    lines = format_note(about).split("\n") if about else []
    return [_NOTE_KEY + '"{}"'.format("\\n".join(_quoted(line)[1:-1] for line in lines))] if lines else []


def _free_name(label: str, used: Collection[str]) -> str:
    """Return an unused animation name without slashes and commas, which Godot's editor rejects."""
    return free_label(re.sub(r"[/,]", "_", label) or _UNNAMED, used)


def _quoted(text: str) -> str:
    """Return a string literal of Godot. Control characters and lone surrogates are replaced."""
    plain = re.sub(r"[\x00-\x1f\x7f]", "_", text).encode("utf-8", "replace").decode()
    return '"{}"'.format(re.sub(r'(["\\])', r"\\\1", plain))
