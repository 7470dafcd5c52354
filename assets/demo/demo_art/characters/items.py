"""What is held: drawn upright beside the hand, from the front, from behind and from the side."""

from __future__ import annotations

from .cells import Part, part

# The grip lies in the middle column; from behind and from the side it is the mirror image.
WEAPONS: dict[str, Part] = {
    "sword": part(4, ".E.\n.E.\n.e.\n.e.\n.e.\naaa\n.o."),
    "dagger": part(7, ".E.\n.E.\n.e.\naaa\n.o."),
    "staff": part(2, ".y.\nyyy\n.y.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.p."),
    "crook": part(2, ".o.\no.o\n..o\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.p."),
    "spear": part(2, ".E.\n.E.\neee\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.p."),
    "axe": part(6, "Eo.\nEeo\nEeo\nEo.\n.o.\n.o.\n.o.\n.p."),
    "hammer": part(6, "eEe\neEe\nrrr\n.o.\n.o.\n.o.\n.p."),
    "club": part(5, "oO.\noOo\noOo\n.oo\n.op\n.p."),
    "fork": part(3, "e.e\ne.e\neee\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.p."),
    "bow": part(6, ".ow\noOw\no.w\no.w\no.w\noOw\n.ow"),
    "pan": part(8, "rer\neEe\n.r.\n.k.\n.k."),
    "pick": part(6, ".ee\neo.\ne.o.\n.o.\n.o.\n.o.\n.p."),
    "cane": part(9, ".a.\n.o.\n.o.\n.o.\n.o.\n.p."),
    "lantern": part(9, "rrr\n.r.\nyyy\nyyy\nrrr"),
    "scythe": part(3, ".Eo\nE.o\n..o\n..o\n..o\n..o\n..o\n..o\n..o\n..o\n..o\n..p"),
    "broom": part(4, ".o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.o.\n.a.\nyyy\nyey"),
    "book": part(9, "aaa\nawa\nawa"),
}
SHIELDS: dict[str, Part] = {
    "round": part(9, ".aa.\naAEb\naEeb\n.bb."),
    "kite": part(9, "eEEe\naaba\naaba\neabr\n.er."),
    "buckler": part(9, ".oo.\noOep\noepp\n.pp."),
}
