"""Who is drawn: every figure by its parts, its colours and its recolours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..palette import COLOURS
from .cells import BACK, FRONT, SIDE, coloured
from .creatures import Creature
from .people import Person

ROWS = ((FRONT, False), (BACK, False), (SIDE, True), (SIDE, False))
"""Down, up, left and right."""
COLUMNS = (0, 1, 0, -1)
"""Stand, step, stand, step with the other leg."""


@dataclass(frozen=True)
class Role:
    """A figure, what its materials are dyed with ('cloth=red hair=wood-'), and what each recolour dyes otherwise."""

    figure: Person | Creature
    dyes: str
    recolours: tuple[tuple[str, str], ...] = ()


def characters(table: NDArray[np.uint8] = COLOURS) -> dict[str, NDArray[np.uint8]]:
    """Return the sheets of all figures and recolours by name: a row for each direction, a column for each frame.

    table: uint8 [ramps, tones, 3], the colours.
    """
    sheets: dict[str, NDArray[np.uint8]] = {}
    for name, role in (PEOPLE | FOLK | BEASTS).items():
        sheet = np.block([[role.figure.cell(view, step, left) for step in COLUMNS] for view, left in ROWS])
        sheets[name] = coloured(sheet, _dyes(role.dyes), table)
        for colour, dyes in role.recolours:
            sheets[f"{name}-{colour}"] = coloured(sheet, _dyes(role.dyes) | _dyes(dyes), table)
    return sheets


def _dyes(text: str) -> dict[str, str]:
    return dict(pair.split("=") for pair in text.split())


PEOPLE: dict[str, Role] = {
    "boy": Role(
        Person("child", hair="short", sleeves="css"),
        "cloth=red hair=wood boots=wood",
        (("green", "cloth=green hair=gold"), ("violet", "cloth=purple skin=wood hair=slate-")),
    ),
    "girl": Role(
        Person("child", hair="tails", skirt="skirt", legwear="ssf"),
        "cloth=pink accent=pink+ hair=orange",
        (("teal", "cloth=teal accent=bone+ hair=wood- skin=wood+"),),
    ),
    "farmer": Role(
        Person(hat="straw", face="smile", outfit="overalls", weapon="fork"),
        "metal=gold legs=blue cloth=red accent=gold skin=skin",
        (("green", "legs=green cloth=bone accent=bone"),),
    ),
    "villager": Role(
        Person(hair="bob", outfit="apron", skirt="skirt", legwear="ssf"),
        "cloth=green accent=green+ hair=red-",
        (("plum", "cloth=purple accent=purple+ hair=slate skin=wood+"),),
    ),
    "princess": Role(
        Person(hair="princess", skirt="dress", sleeves="css"),
        "cloth=pink accent=gold hair=gold",
        (("blue", "cloth=blue accent=bone+ hair=wood-"),),
    ),
    "king": Role(
        Person("stout", hat="crown", beard="full", outfit="coat", cape="cape"),
        "cloth=red accent=red hair=steel+ boots=wood legs=red- metal=gold",
        (("blue", "cloth=blue accent=blue legs=blue- hair=wood"),),
    ),
    "knight": Role(
        Person(hat="helm", outfit="armour", weapon="sword", shield="kite", sleeves="eee", legwear="eee"),
        "accent=red",
        (("blue", "accent=blue"), ("golden", "metal=gold accent=red")),
    ),
    "paladin": Role(
        Person(hat="great helm", outfit="tabard", cape="cape", weapon="hammer", sleeves="eee", legwear="eee"),
        "metal=steel+ cloth=blue accent=blue",
        (("red", "cloth=red accent=red"),),
    ),
    "guard": Role(
        Person(hat="kettle", face="stern", outfit="tabard", weapon="spear", sleeves="ees", legwear="llf"),
        "cloth=green accent=gold legs=wood-",
    ),
    "viking": Role(
        Person("dwarf", hat="horned", beard="full", outfit="vest", weapon="axe", sleeves="sss"),
        "hair=orange accent=gold cloth=wood legs=wood-",
        (("dark", "hair=slate- cloth=red accent=red"),),
    ),
    "miner": Role(
        Person("dwarf", hat="miner", beard="short", outfit="overalls", weapon="pick"),
        "metal=gold hair=wood cloth=red legs=blue accent=gold skin=skin",
    ),
    "wizard": Role(
        Person("small", hat="wizard", beard="long", skirt="robe", weapon="staff", face="old"),
        "cloth=blue accent=gold hair=bone+",
        (("violet", "cloth=purple accent=teal"),),
    ),
    "witch": Role(
        Person("small", hair="long", hat="wizard", skirt="dress", weapon="broom"),
        "cloth=purple- accent=gold hair=orange metal=gold",
        (("green", "cloth=slate- accent=slate hair=slate skin=green+"),),
    ),
    "monk": Role(
        Person(hair="bald", skirt="robe", weapon="book", sleeves="ccs"),
        "cloth=wood accent=bone hair=wood-",
        (("saffron", "cloth=orange accent=red skin=skin hair=slate"),),
    ),
    "ranger": Role(
        Person(hat="hood", face="close", outfit="tunic", weapon="bow", cape="quiver"),
        "cloth=green accent=wood legs=wood-",
        (("crimson", "cloth=red accent=wood+ skin=wood+"),),
    ),
    "thief": Role(
        Person(hat="dark hood", outfit="tunic", weapon="dagger", cape="cape"),
        "cloth=slate accent=red- legs=slate- boots=slate",
        (("green", "cloth=green- accent=wood- glow=red"),),
    ),
    "ninja": Role(
        Person(hat="ninja", face="close", outfit="kimono", weapon="sword", sleeves="ccs", legwear="ccd"),
        "cloth=slate accent=red",
        (("blue", "cloth=blue- accent=bone+"),),
    ),
    "samurai": Role(
        Person(hair="topknot", face="stern", outfit="kimono", weapon="sword", legwear="llf"),
        "cloth=teal accent=wood hair=slate- legs=slate",
    ),
    "pirate": Role(
        Person(hat="bandana", face="patch", outfit="stripes", weapon="sword", beard="goatee"),
        "cloth=red legs=wood accent=gold hair=slate skin=skin",
        (("blue", "cloth=blue hair=wood"),),
    ),
    "captain": Role(
        Person(hat="brim", face="patch", beard="full", outfit="coat", weapon="sword", cape="cape"),
        "cloth=slate accent=red hair=wood legs=slate-",
    ),
    "gentleman": Role(
        Person("small", hat="top", beard="moustache", outfit="suit", weapon="cane"),
        "cloth=slate accent=red hair=wood legs=slate boots=wood",
        (("plum", "cloth=purple accent=gold hair=bone legs=purple-"),),
    ),
    "detective": Role(
        Person(hat="brim", face="stern", outfit="suit", cape=""),
        "cloth=wood accent=wood- hair=slate legs=slate",
    ),
    "chef": Role(
        Person("small", hat="chef", beard="moustache", outfit="apron", weapon="pan", face="smile"),
        "cloth=steel+ hair=slate legs=slate",
    ),
    "jester": Role(
        Person(hat="jester", face="smile", outfit="coat", legwear="laf", sleeves="aas"),
        "cloth=purple accent=green legs=purple boots=gold hair=wood",
        (("red", "cloth=red accent=blue legs=red"),),
    ),
    "merchant": Role(
        Person("stout", hat="turban", beard="short", outfit="vest", cape="pack", sleeves="ccs"),
        "cloth=orange accent=red skin=wood hair=slate- legs=slate",
    ),
    "astronaut": Role(
        Person(hat="space", outfit="space", sleeves="wwe", legwear="wwe", face="none"),
        "accent=blue",
        (("orange", "accent=orange"),),
    ),
    "trapper": Role(
        Person("stout", hat="fur", outfit="coat", weapon="spear"),
        "cloth=wood metal=bone+ skin=skin legs=wood- boots=bone",
    ),
    "punk": Role(
        Person(hair="mohawk", face="shades", outfit="vest", sleeves="sss"),
        "cloth=slate accent=steel hair=green legs=slate",
        (("pink", "hair=pink cloth=purple skin=wood"),),
    ),
    "dancer": Role(
        Person(hair="afro", face="close", outfit="suit", legwear="ccf"),
        "cloth=bone+ accent=red hair=wood- skin=wood+ boots=bone",
    ),
    "fighter": Role(
        Person(hat="headband", face="stern", outfit="kimono", legwear="ccs", sleeves="css"),
        "cloth=bone+ accent=red hair=slate-",
    ),
    "elf": Role(
        Person(hair="ponytail", outfit="tunic", weapon="bow", legwear="ccf", cape="quiver", sleeves="css"),
        "cloth=green accent=wood hair=gold",
        (("night", "cloth=purple skin=slate+ hair=bone+"),),
    ),
    "angel": Role(
        Person(hair="long", skirt="robe", cape="wings"),
        "cloth=bone+ accent=gold hair=gold metal=steel+ legs=bone boots=gold",
        (("rose", "cloth=pink+ accent=red hair=wood skin=wood+"),),
    ),
    "barbarian": Role(
        Person("giant", hair="long", face="stern", outfit="bare", weapon="club", sleeves="sss", legwear="ssf"),
        "skin=skin hair=wood- accent=wood",
        (("red", "skin=skin+ hair=orange accent=green"),),
    ),
    "doctor": Role(
        Person(hair="short", face="glasses", outfit="coat"),
        "cloth=steel+ hair=wood legs=blue",
    ),
    "grandmother": Role(
        Person("child", hair="bun", face="glasses", skirt="dress", weapon="cane"),
        "cloth=purple accent=pink hair=steel+",
    ),
    "elder": Role(
        Person("child", hair="bald", beard="long", face="old", skirt="robe", weapon="crook"),
        "cloth=teal accent=gold hair=bone+ skin=wood+",
    ),
    "schoolboy": Role(
        Person("child", hat="cap", cape="pack", face="wide", sleeves="css"),
        "cloth=blue accent=gold hair=wood wood=red legs=slate",
    ),
    "hero": Role(
        Person(hair="spiky", outfit="tunic", cape="cape", weapon="sword", shield="buckler"),
        "cloth=blue accent=red hair=wood legs=wood",
        (("golden", "cloth=green accent=green hair=gold"),),
    ),
    "valkyrie": Role(
        Person(hair="ponytail", outfit="armour", weapon="spear", shield="round", sleeves="ees", legwear="see"),
        "hair=red accent=gold",
    ),
    "strongman": Role(
        Person("giant", hair="bald", beard="moustache", outfit="stripes", sleeves="sss", legwear="ccf"),
        "cloth=red skin=skin hair=slate",
    ),
    "vampire": Role(
        Person(hair="fringe", face="glow", outfit="suit", cape="cape"),
        "cloth=slate accent=red skin=bone+ hair=slate glow=red legs=slate",
    ),
    "zombie": Role(
        Person(hair="bald", face="wide", outfit="coat", sleeves="css"),
        "cloth=wood skin=green+ hair=wood- legs=slate",
    ),
}
FOLK: dict[str, Role] = {
    "skeleton": Role(
        Person(mask="skull", outfit="bones", sleeves="sts", legwear="sss"),
        "skin=bone+",
        (("bronze", "skin=gold"),),
    ),
    "revenant": Role(
        Person(
            mask="skull", hat="kettle", outfit="armour", weapon="sword", shield="round", sleeves="sts", legwear="sss"
        ),
        "skin=bone+ metal=wood accent=wood hair=bone",
    ),
    "reaper": Role(
        Person(hat="dark hood", skirt="shroud", weapon="scythe"),
        "cloth=slate skin=bone+ glow=red",
    ),
    "scarecrow": Role(
        Person(mask="pumpkin", outfit="coat", weapon="lantern", legwear="mmf"),
        "cloth=orange legs=green boots=wood",
    ),
    "cactus": Role(
        Person(mask="cactus", outfit="shirt", sleeves="ccc", legwear="ccd"),
        "cloth=green accent=pink",
    ),
    "mushroom": Role(
        Person("child", mask="mushroom", outfit="bark", sleeves="sss", legwear="sss"),
        "cloth=red skin=bone+",
        (("blue", "cloth=blue"),),
    ),
    "catfolk": Role(
        Person(mask="cat", outfit="tunic", cape="tail", sleeves="css"),
        "skin=orange accent=pink+ cloth=teal",
        (("grey", "skin=steel cloth=red"),),
    ),
    "rabbit": Role(
        Person("child", mask="rabbit", outfit="vest", sleeves="css"),
        "skin=bone+ accent=pink cloth=blue",
    ),
    "werewolf": Role(
        Person("giant", mask="wolf", outfit="bark", sleeves="sss", legwear="llf"),
        "skin=slate+ legs=wood boots=slate",
        (("brown", "skin=wood boots=wood legs=blue"),),
    ),
    "butcher": Role(
        Person("stout", mask="pig", outfit="apron", weapon="axe", sleeves="sss"),
        "skin=pink+ accent=red+ cloth=red",
    ),
    "frog": Role(
        Person("dwarf", mask="frog", outfit="vest", sleeves="sss", legwear="sss"),
        "skin=green cloth=purple accent=gold",
        (("orange", "skin=orange cloth=blue"),),
    ),
    "merman": Role(
        Person(mask="fish", outfit="bare", weapon="fork", sleeves="sss", legwear="sst"),
        "skin=teal accent=orange",
        (("blue", "skin=blue accent=gold"),),
    ),
    "crow": Role(
        Person(mask="bird", skirt="robe", weapon="lantern"),
        "skin=slate accent=purple cloth=purple- legs=gold boots=gold metal=wood",
    ),
    "lizard": Role(
        Person(mask="lizard", outfit="armour", cape="tail", weapon="spear", sleeves="sss", legwear="sss"),
        "skin=green accent=orange metal=gold",
        (("blue", "skin=blue accent=red metal=steel"),),
    ),
    "goblin": Role(
        Person("child", mask="goblin", outfit="vest", weapon="dagger", sleeves="sss", legwear="sst"),
        "skin=green+ cloth=wood accent=wood-",
        (("blue", "skin=blue cloth=red"),),
    ),
    "orc": Role(
        Person("giant", mask="orc", outfit="bare", weapon="club", sleeves="sss", legwear="llf"),
        "skin=green hair=slate accent=red legs=wood",
        (("grey", "skin=steel hair=red accent=blue"),),
    ),
    "demon": Role(
        Person(mask="demon", outfit="bare", cape="bat wings", weapon="fork", sleeves="sss", legwear="sst"),
        "skin=red accent=slate metal=bone glow=gold",
        (("violet", "skin=purple glow=green"),),
    ),
    "television": Role(
        Person(mask="television", outfit="suit", legwear="ccf"),
        "metal=wood accent=teal cloth=slate",
    ),
    "robot": Role(
        Person(mask="robot", outfit="box", sleeves="ere", legwear="ree"),
        "accent=orange glow=teal",
        (("golden", "metal=gold accent=blue"),),
    ),
    "ember": Role(
        Person(mask="flame", outfit="shirt", sleeves="cCc", legwear="ddd"),
        "cloth=orange",
        (("blue", "cloth=blue glow=teal"),),
    ),
    "egg": Role(
        Person("child", mask="egg", outfit="shirt", sleeves="sss", legwear="ccf"),
        "skin=bone+ cloth=blue boots=gold",
    ),
    "yeti": Role(
        Person("giant", mask="yeti", outfit="fur", sleeves="hhs", legwear="hhs"),
        "hair=bone+ skin=steel",
        (("brown", "hair=wood skin=skin"),),
    ),
    "bear": Role(
        Person("stout", mask="bear", outfit="overalls", sleeves="sss", legwear="lls"),
        "skin=wood accent=bone legs=red",
    ),
    "cyclops": Role(
        Person("stout", mask="eye", outfit="bare", sleeves="sss", weapon="club", legwear="sss"),
        "skin=purple accent=gold metal=steel",
    ),
    "treant": Role(
        Person("giant", mask="tree", outfit="bark", sleeves="sts", legwear="sts"),
        "skin=wood cloth=green",
        (("autumn", "cloth=orange skin=wood-"),),
    ),
}
BEASTS: dict[str, Role] = {
    "cat": Role(Creature("cat"), "skin=orange accent=pink+", (("black", "skin=slate accent=pink"),)),
    "dog": Role(Creature("dog"), "skin=wood+ accent=wood-", (("white", "skin=bone+ accent=slate"),)),
    "sheep": Role(Creature("sheep"), "hair=bone+ skin=slate", (("black", "hair=slate skin=skin"),)),
    "boar": Role(Creature("boar"), "skin=wood hair=slate- accent=pink"),
    "turtle": Role(
        Creature("turtle"), "skin=green cloth=wood accent=green", (("red", "cloth=red skin=gold accent=gold"),)
    ),
    "chicken": Role(Creature("chicken"), "accent=orange metal=steel+"),
    "penguin": Role(Creature("penguin"), "cloth=slate accent=orange"),
    "owl": Role(Creature("owl"), "skin=wood accent=bone", (("grey", "skin=slate+ accent=steel+"),)),
    "slime": Role(Creature("slime"), "cloth=green", (("blue", "cloth=blue"),)),
    "ghost": Role(Creature("ghost"), "cloth=bone+", (("violet", "cloth=purple+"),)),
    "spider": Role(Creature("spider"), "skin=purple cloth=purple accent=purple"),
    "crab": Role(Creature("crab"), "skin=red", (("blue", "skin=blue"),)),
    "snail": Role(Creature("snail"), "skin=gold cloth=pink"),
    "tank": Role(Creature("tank", bob=0), "accent=red"),
    "bat": Role(Creature("bat", bob=0), "skin=purple accent=purple-"),
}
