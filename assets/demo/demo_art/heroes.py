"""Heroes: big heads on small bodies, with hair or headgear, clothes, a weapon and sometimes a shield or a cape."""

from __future__ import annotations

from collections.abc import Callable

from numpy.random import Generator

from . import hero_parts as parts
from .canvas import Canvas, Key, chance, pick
from .light import inflate, lambert, tube
from .palette import BRIGHT, Ramp
from .shapes import Mask, art, box, rows, shift, silhouette

SIZE = 24
MIDDLE = SIZE // 2
HEAD_TOP = 5
NECK = 14
SKINS = (Ramp.SKIN,) * 5 + (Ramp.WOOD,) * 4 + (Ramp.GREEN, Ramp.BONE, Ramp.BLUE, Ramp.PURPLE, Ramp.TEAL)
HAIRS = (Ramp.WOOD, Ramp.WOOD, Ramp.GOLD, Ramp.SLATE, Ramp.SLATE, Ramp.ORANGE, Ramp.RED, Ramp.BONE, Ramp.STEEL,
         Ramp.PINK, Ramp.BLUE, Ramp.GREEN, Ramp.PURPLE)  # fmt: skip
CLOTHES = (*BRIGHT, Ramp.STEEL, Ramp.STEEL, Ramp.SLATE, Ramp.WOOD, Ramp.BONE)
Gear = Callable[[Canvas, Generator, Ramp, Ramp], None]


def _digits(ramp: Ramp) -> dict[str, tuple[Ramp, int]]:
    """A key in which digits are tones of one ramp."""
    return {digit: (ramp, int(digit)) for digit in "01234"}


def _legs(canvas: Canvas, rng: Generator, cloth: Ramp) -> None:
    """Trousers and boots, or a robe to the floor."""
    boots = pick(rng, (Ramp.WOOD, Ramp.WOOD, Ramp.SLATE))
    if chance(rng, 0.25):
        robe = rows(SIZE, 18, (4, 5, 5, 6))
        canvas.lit(robe, cloth, tube(SIZE, MIDDLE - 0.5, 6.4), (0.25, 0.7, 0.98))
        canvas.flat(robe & ~shift(robe, 0, -1), cloth, 1)
        return
    trousers = pick(rng, (cloth, Ramp.WOOD, Ramp.SLATE))
    for left, tone in ((8, 2), (13, 1)):
        canvas.flat(box(SIZE, left, 18, left + 2, 19), trousers, tone)
        canvas.flat(box(SIZE, left, 20, left + 2, 21), boots, 2)
        canvas.flat(box(SIZE, left, 20, left, 20), boots, 3)
        canvas.flat(box(SIZE, left + 2, 20, left + 2, 21), boots, 1)


def _body(canvas: Canvas, rng: Generator, cloth: Ramp, accent: Ramp, skin: Ramp) -> None:
    """Torso with arms at its sides, a belt, and something on the chest."""
    torso = rows(SIZE, NECK - 1, (3, 4, 4, 4, 4, 4))
    canvas.lit(torso, cloth, tube(SIZE, MIDDLE - 0.5, 5.4), (0.25, 0.75, 0.99))
    style = int(rng.integers(4))
    if style == 0:
        canvas.flat(box(SIZE, 8, 17, 15, 17), Ramp.WOOD, 1)
        canvas.flat(box(SIZE, 11, 17, 12, 17), Ramp.GOLD, 3)
    elif style == 1:
        canvas.recolour(box(SIZE, 11, NECK, 12, 18) & torso, accent)
    elif style == 2:
        emblem = art(SIZE, pick(rng, parts.EMBLEMS), 10, NECK + 1)
        canvas.flat(emblem & torso, accent, 3)
    sleeve = cloth if chance(rng, 0.6) else accent
    for left, tone in ((6, 3), (16, 2)):
        arm = box(SIZE, left, NECK, left + 1, 17)
        canvas.seam(arm, 1)
        canvas.flat(arm, sleeve, tone)
        canvas.flat(box(SIZE, left + 1, NECK + 1, left + 1, 17), sleeve, tone - 1)
        canvas.flat(box(SIZE, left, 17, left + 1, 17), skin, tone)


def _head(canvas: Canvas, rng: Generator, skin: Ramp) -> None:
    """Face with shading on its right and along the chin, eyes and mouth."""
    head = rows(SIZE, HEAD_TOP, (4, 5, 6, 6, 6, 6, 6, 5, 4))
    canvas.seam(head)
    canvas.flat(head, skin, 3)
    canvas.flat(head & (~shift(head, -1, 0) | ~shift(head, 0, -1)), skin, 2)
    key: Key = {"k": (Ramp.SLATE, 0), "w": (Ramp.BONE, 4), "m": (skin, 1)}
    eye = pick(rng, parts.EYES)
    canvas.stamp_pair(eye, MIDDLE - 1 - len(eye[0]) - int(rng.integers(1, 3)), 9, key)
    mouth = pick(rng, parts.MOUTHS)
    if mouth:
        canvas.stamp(mouth, MIDDLE - len(mouth[0]) // 2, 12 if len(mouth) == 1 else 11, key)
    if chance(rng, 0.25) and skin in (Ramp.SKIN, Ramp.BONE):
        canvas.stamp_pair(("bb",), 7, 11, {"b": (Ramp.PINK, 3)})


def _hair(canvas: Canvas, rng: Generator, hair: Ramp, _accent: Ramp) -> None:
    """A haircut, shaded as one mass, with a beard under some."""
    drawing = parts.HAIR[pick(rng, list(parts.HAIR))]
    mask = art(SIZE, drawing, 5, 3)
    canvas.darken(shift(mask, 0, 1) & ~mask & box(SIZE, 6, 6, 17, 9))
    canvas.lit(mask, hair, lambert(inflate(mask), 0.9), (0.18, 0.66, 0.93))


def _beard(canvas: Canvas, rng: Generator, hair: Ramp) -> None:
    """A beard or a moustache."""
    mask = art(SIZE, pick(rng, parts.BEARDS), 6, 9)
    canvas.flat(mask, hair, 2)
    canvas.flat(mask & ~shift(mask, 0, 1), hair, 3)
    canvas.flat(mask & ~shift(mask, -1, 0), hair, 1)


def _dome(canvas: Canvas, ramp: Ramp, halves: tuple[int, ...], top: int) -> Mask:
    """A rounded cap over the head."""
    mask = rows(SIZE, top, halves)
    canvas.seam(mask, 1)
    canvas.lit(mask, ramp, lambert(inflate(mask), 1.0), (0.15, 0.6, 0.9))
    return mask


def _great_helm(canvas: Canvas, rng: Generator, metal: Ramp, accent: Ramp) -> None:
    """A closed helm with a slit, and a plume or a crest."""
    helm = _dome(canvas, metal, (4, 6, 7, 7, 7, 7, 7, 7, 6, 5), 4)
    eyes = box(SIZE, 7, 9, 10, 10) | box(SIZE, 13, 9, 16, 10)
    slit = pick(rng, (box(SIZE, 7, 9, 16, 9), eyes, box(SIZE, 6, 9, 17, 10)))
    canvas.flat(slit & helm, Ramp.SLATE, 0)
    trim = accent if chance(rng, 0.5) else Ramp.GOLD
    if chance(rng, 0.6):
        canvas.flat(box(SIZE, 11, 5, 11, 13) & ~slit, trim, 3)
        canvas.flat(box(SIZE, 12, 5, 12, 13) & ~slit, trim, 2)
    else:
        canvas.flat(box(SIZE, 9, 12, 9, 12) | box(SIZE, 11, 12, 11, 12) | box(SIZE, 13, 12, 13, 12), Ramp.SLATE, 0)
    if chance(rng, 0.6):
        plume = pick(rng, parts.PLUMES)
        canvas.stamp(plume, 9, 6 - len(plume), _digits(accent))


def _half_helm(canvas: Canvas, rng: Generator, metal: Ramp, accent: Ramp) -> None:
    """An open helm with a band, and horns, a crest or a nose guard."""
    dome = _dome(canvas, metal, (4, 5, 6, 7, 7), 4)
    band = dome & box(SIZE, 0, 8, SIZE, 8)
    canvas.recolour(band, accent)
    style = int(rng.integers(4))
    if style == 0:
        horn = pick(rng, parts.HORNS)
        canvas.stamp_pair(horn, 6 - len(horn[0]), 8 - len(horn), _digits(Ramp.BONE))
    elif style == 1:
        crest = rows(SIZE, 2, (2, 3, 3, 2, 2, 2))
        canvas.seam(crest, 1)
        canvas.flat(crest, accent, 2)
        canvas.flat(crest & (~shift(crest, 0, 1) | ~shift(crest, 1, 0)), accent, 3)
        canvas.flat(crest & ~shift(crest, -1, 0), accent, 1)
    elif style == 2:
        wing = ("4..", "434", "433", ".32")
        canvas.stamp_pair(wing, 3, 4, _digits(Ramp.BONE))
    if chance(rng, 0.4):
        canvas.flat(box(SIZE, 11, 9, 12, 10), metal, 2)
    if chance(rng, 0.5):
        canvas.stamp_pair(("32", "32", "32", ".2"), 5, 9, _digits(metal))


def _wizard_hat(canvas: Canvas, rng: Generator, cloth: Ramp, accent: Ramp) -> None:
    """A pointed hat with a broad brim and a band."""
    lean = pick(rng, (-1, 0, 0, 1))
    hat = shift(rows(SIZE, 2, (1, 1)), lean, 0) | rows(SIZE, 4, (2, 3, 4)) | rows(SIZE, 7, (8, 9))
    canvas.seam(hat, 1)
    canvas.lit(hat, cloth, lambert(inflate(hat), 0.9), (0.2, 0.6, 0.92))
    canvas.flat(rows(SIZE, 6, (5,)), accent, 2)
    canvas.flat(box(SIZE, 11, 6, 12, 6), accent, 4)
    canvas.flat(rows(SIZE, 8, (9,)) & hat, cloth, 1)


def _hood(canvas: Canvas, rng: Generator, cloth: Ramp, _accent: Ramp) -> None:
    """A hood; inside it the face in shadow, or only two lights."""
    outer = rows(SIZE, 3, (2, 4, 6, 7, 7, 7, 7, 7, 7, 7, 6, 5))
    opening = rows(SIZE, 7, (3, 4, 5, 5, 5, 4, 3))
    face = canvas.ramp.copy(), canvas.tone.copy()
    canvas.seam(outer, 1)
    canvas.lit(outer, cloth, lambert(inflate(outer), 0.9), (0.18, 0.62, 0.92))
    canvas.ramp[opening], canvas.tone[opening] = face[0][opening], face[1][opening]
    if chance(rng, 0.4):
        canvas.flat(opening, Ramp.SLATE, 0)
        glow: Key = {"e": (pick(rng, (Ramp.GOLD, Ramp.RED, Ramp.TEAL)), 3)}
        canvas.stamp_pair(pick(rng, (("e", "e"), ("ee",), ("e.", "ee"))), 9, 9, glow)
    else:
        canvas.darken(opening & ~shift(opening, 0, 1))


def _mask(canvas: Canvas, rng: Generator, cloth: Ramp, accent: Ramp) -> None:
    """A cowl that leaves only the eyes free."""
    band = rows(SIZE, 9, (5, 5)) if chance(rng, 0.5) else rows(SIZE, 8, (5, 6, 5))
    face = canvas.ramp.copy(), canvas.tone.copy()
    cowl = _dome(canvas, cloth, (4, 6, 6, 7, 7, 7, 7, 7, 6, 5), 4)
    canvas.ramp[band], canvas.tone[band] = face[0][band], face[1][band]
    if chance(rng, 0.6):
        canvas.recolour(cowl & box(SIZE, 0, 6, SIZE, 7), accent)
        canvas.stamp(("33", ".32"), 19, 6, _digits(accent))


def _crowned(canvas: Canvas, rng: Generator, hair: Ramp, accent: Ramp) -> None:
    """Hair under a crown or a headband."""
    _hair(canvas, rng, hair, accent)
    if chance(rng, 0.5):
        crown = pick(rng, parts.CROWNS)
        canvas.stamp(crown, 8, 2, {**_digits(Ramp.GOLD), "r": (accent, 2)})
        canvas.seam(silhouette(SIZE, crown, 8, 2), 1)
        return
    canvas.flat(box(SIZE, 5, 7, 18, 7), accent, 2)
    canvas.flat(box(SIZE, 5, 7, 10, 7), accent, 3)
    canvas.stamp(("32", ".2"), 19, 7, _digits(accent))


def _carry(canvas: Canvas, rng: Generator, accent: Ramp) -> None:
    """What is in the hands."""
    metal = pick(rng, (Ramp.STEEL, Ramp.STEEL, Ramp.STEEL, Ramp.GOLD, Ramp.BONE))
    magic = pick(rng, BRIGHT)
    key: Key = {
        **_digits(metal),
        "w": (Ramp.WOOD, 3),
        "v": (Ramp.WOOD, 2),
        "h": (Ramp.GOLD, 4),
        "g": (Ramp.GOLD, 2),
        "q": (magic, 4),
        "o": (magic, 3),
        "p": (magic, 2),
    }
    if chance(rng, 0.8):
        drawing = parts.WEAPONS[pick(rng, list(parts.WEAPONS))]
        canvas.stamp(drawing, 18, 19 - len(drawing) + int(len(drawing) > 10) * 2, key)
    if chance(rng, 0.35):
        buckler = pick(rng, parts.BUCKLERS)
        canvas.seam(silhouette(SIZE, buckler, 3, NECK))
        canvas.stamp(buckler, 3, NECK, {**_digits(metal), "f": (accent, 3), "e": (accent, 2)})


def draw(rng: Generator) -> Canvas:
    """One hero."""
    canvas = Canvas(SIZE)
    skin, hair = pick(rng, SKINS), pick(rng, HAIRS)
    cloth = pick(rng, CLOTHES)
    accent = pick(rng, [r for r in BRIGHT if r != cloth])
    metal = pick(rng, (Ramp.STEEL, Ramp.STEEL, Ramp.GOLD, Ramp.SLATE, Ramp.BONE))
    metal = Ramp.STEEL if metal == accent else metal
    hair = hair if hair != skin else Ramp.SLATE
    if chance(rng, 0.3):
        cape = rows(SIZE, NECK, (6, 7, 7, 7, 7, 8, 8))
        canvas.flat(cape, accent, 1)
        canvas.flat(cape & ~shift(cape, 2, 0), accent, 2)
    _legs(canvas, rng, cloth)
    _body(canvas, rng, cloth, accent, skin)
    _carry(canvas, rng, accent)
    _head(canvas, rng, skin)
    gear: Gear
    gear, ramp = pick(
        rng,
        (
            (_hair, hair),
            (_hair, hair),
            (_hair, hair),
            (_crowned, hair),
            (_great_helm, metal),
            (_half_helm, metal),
            (_half_helm, metal),
            (_wizard_hat, cloth),
            (_hood, cloth),
            (_mask, cloth),
        ),
    )
    gear(canvas, rng, ramp, accent)
    if gear in (_hair, _crowned, _half_helm, _wizard_hat) and chance(rng, 0.3):
        _beard(canvas, rng, hair)
    canvas.outline()
    return canvas
