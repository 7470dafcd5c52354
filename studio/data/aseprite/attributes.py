"""Find attributes in an Aseprite file: in the user data of sprite, tags, layers and cels, and in groups of layers."""

from __future__ import annotations

from collections.abc import Iterator

from studio.data.aseprite.file import GROUP, ROOT, AseFile, Frame
from studio.data.attributes.columns import pair
from studio.data.attributes.reading import pairs_in

Pairs = tuple[tuple[str, str], ...]


def frame_attributes(ase: AseFile, number: int) -> Pairs:
    """Return the attributes that user data like 'element=fire' give to a frame. number: of the frame, from 0.

    The text of a cel wins over the text of its layer, the layer over a tag, and the tag over the sprite.
    """
    found = dict[str, str]()
    for text in _texts(ase, number):
        found.update(pairs_in(text))
    return tuple(found.items())


def _texts(ase: AseFile, number: int) -> Iterator[str]:
    """Yield the user data of a frame, from the sprite to the cels. Hidden layers are left out."""
    frame = ase.frames[number]
    yield ase.text.get(ROOT, "")
    spans = [index for index, tag in enumerate(ase.tags) if tag.first <= number <= tag.last]
    for index in sorted(spans, key=lambda index: ase.tags[index].first - ase.tags[index].last):  # the shortest last
        yield ase.tag_texts.get(index, "")
    drawn = [layer for layer in sorted(frame.cels) if ase.layers[layer].visible]
    groups = {parent for layer in drawn for parent in _parents(ase, layer)}
    for layer in sorted({*drawn, *groups}):
        yield ase.layer_texts.get(layer, "")
    for layer in drawn:
        yield frame.texts.get(layer, "")


def layer_attributes(ase: AseFile, frame: Frame) -> Pairs:
    """Return an attribute for each group of layers of which a frame shows a single layer: group 'weapon', 'axe'."""
    shown: dict[int, list[str]] = {}
    for layer in sorted(frame.cels):
        if ase.layers[layer].visible and ase.layers[layer].parent != ROOT:
            shown.setdefault(ase.layers[layer].parent, []).append(ase.layers[layer].name)
    single = ((ase.layers[group].name, names[0]) for group, names in shown.items() if len(names) == 1)
    return tuple(found for name, value in single if (found := pair(name, value)))


def _parents(ase: AseFile, layer: int) -> Iterator[int]:
    """Yield the groups around a layer."""
    while (layer := ase.layers[layer].parent) != ROOT and ase.layers[layer].kind == GROUP:
        yield layer
