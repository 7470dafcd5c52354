"""Creatures without arms: animals, jellies, ghosts and crawlers, each a body that bobs over legs, hems or feelers."""

from __future__ import annotations

from dataclasses import dataclass

from .beasts import BODIES, Poses, poses
from .cells import SIDE, Grid, Part, blank, outline, part

TATTERS = poses(
    13,
    """
    ..ccccccccdd..|..ccccccccdd..|..ccccccccdd..
    ..c..cc..d.d..|..c..cc..d.d..|..c..cc..d.d..
    """,
    """
    ..ccccccccdd..|..ccccccccdd..|..ccccccccdd..
    ...c..cc..d...|...c..cc..d...|...c..cc..d...
    """,
    """
    ..ccccccccdd..|..ccccccccdd..|..ccccccccdd..
    ..cc..cc..dd..|..cc..cc..dd..|..cc..cc..dd..
    """,
)
SPIDER_LEGS = poses(
    8,
    """
    ..aa......aa..|..aa......aa..|..............
    .a..........a.|.a..........a.|..............
    a..aa....aa..a|a..aa....aa..a|..a.........a.
    a.a........a.a|a.a........a.a|.a.a..a..a..a.
    ..a........a..|..a........a..|.a.a..a..a..a.
    ..a........a..|..a........a..|a..a..a...a..a
    ..a........a..|..a........a..|a..a..a...a..a
    """,
    """
    .aa........a..|..a........aa.|..............
    a..........aa.|.aa..........a|..............
    a..aa....aa..a|a..aa....aa..a|...a........a.
    a.a........a.a|a.a........a.a|..a.a..a..a.a.
    ..a.......a..a|a..a.......a..|..a.a..a..a.a.
    ..a.......a...|...a.......a..|.a..a..a.a...a
    ..a.......a...|...a.......a..|.a..a..a.a...a
    """,
    """
    ..a........aa.|.aa........a..|..............
    .aa..........a|a..........aa.|..............
    a..aa....aa..a|a..aa....aa..a|.a..........a.
    a.a........a.a|a.a........a.a|.a..a..a..a..a
    a..a.......a..|..a.......a..a|a...a..a..a..a
    ...a.......a..|..a.......a...|a..a..a....a.a
    ...a.......a..|..a.......a...|a..a..a....a.a
    """,
)
CRAB_LEGS = poses(
    12,
    """
    .s.s......s.s.|.s.s......s.s.|..s..s..t..t..
    s.s.s....t.t.t|s.s.s....t.t.t|.s..s...t..t..
    s.s........t.t|s.s........t.t|.s..s....t..t.
    """,
    """
    .s.s......s.s.|.s.s......s.s.|..s..s..t..t..
    s..s......t.t.|s..s......t.t.|..s.s..t..t...
    s...s....t..t.|s...s....t..t.|..s.s..t..t...
    """,
    """
    .s.s......s.s.|.s.s......s.s.|..s..s..t..t..
    .s.s......t..t|.s.s......t..t|.s..s...t..t..
    .s..s....t...t|.s..s....t...t|s..s.....t..t.
    """,
)
FOOT = poses(
    13,
    """
    ...SSssssst...|...SSssssst...|sSSsssssssss..
    ...sssssstt...|...sssssstt...|tssssssssssss.
    """,
    """
    ..SSssssssst..|..SSssssssst..|..SSsssssssss.
    ..ssssssssst..|..ssssssssst..|.tssssssssssss
    """,
    """
    ...SSssssst...|...SSssssst...|sSSssssssss...
    ...sssssstt...|...sssssstt...|tsssssssssss..
    """,
)
WHEELS = poses(
    12,
    """
    .krrk....krrk.|.krrk....krrk.|.krrrrrrrrrrk.
    .keek....keek.|.keek....keek.|krekrekkrekrek
    .krrk....krrk.|.krrk....krrk.|.krrrrrrrrrrk.
    """,
    """
    .keek....keek.|.keek....keek.|.krrrrrrrrrrk.
    .krrk....krrk.|.krrk....krrk.|kerkerkkerkerk
    .keek....keek.|.keek....keek.|.krrrrrrrrrrk.
    """,
    """
    .krrk....keek.|.keek....krrk.|.krrrrrrrrrrk.
    .keek....krrk.|.krrk....keek.|kkrekkrrkkrekk
    .krrk....keek.|.keek....krrk.|.krrrrrrrrrrk.
    """,
)
WINGS = poses(
    4,
    """
    ..............|..............|aa............
    a............a|a............a|aaa...........
    aa..........aa|aa..........aa|abaa..........
    aba........aba|aba........aba|abbaa.........
    abaa......aaba|abaa......aaba|.abbaa........
    a.abaa..aaba.a|a.abaa..aaba.a|..a.aa........
    ...a......a...|...a......a...|..............
    """,
    """
    aa..........aa|aa..........aa|a.............
    .aa........aa.|.aa........aa.|aa............
    .aba......aba.|.aba......aba.|aba...........
    ..aba....aba..|..aba....aba..|abba..........
    ..abaa..aaba..|..abaa..aaba..|.abbaa........
    ...aa....aa...|...aa....aa...|..abaa........
    ..............|..............|..............
    """,
    """
    ..............|..............|..............
    ..............|..............|..............
    ..............|..............|..............
    ..aaa....aaa..|..aaa....aaa..|..aaaa........
    .abbaa..aabba.|.abbaa..aabba.|.aabbaa.......
    aba.aa..aa.aba|aba.aa..aa.aba|aabba.........
    aa...a..a...aa|aa...a..a...aa|aba.a.........
    a............a|a............a|a.............
    """,
)
SLIME = poses(
    4,
    """
    ..............|..............|..............
    ..............|..............|..............
    .....cccc.....|.....cccc.....|.....cccc.....
    ...ccCCcccc...|...ccCCcccc...|...ccCCcccc...
    ..cCCccccccd..|..cCCccccccd..|..cCCccccccd..
    ..cCckcccckd..|..cCccccccdd..|..cCcccckcckd.
    .cccckcccckcd.|.ccccccccccdd.|.cccccckcckcd.
    .cccccckkcccd.|.ccccccccccdd.|.ccccccckkccd.
    .cccccccccccd.|.ccccccccccdd.|.cccccccccccd.
    .dccccccccddd.|.dccccccccddd.|.dccccccccddd.
    ..dddddddddd..|..dddddddddd..|..dddddddddd..
    """,
    """
    ..............|..............|..............
    ..............|..............|..............
    ..............|..............|..............
    ..............|..............|..............
    ....cccccc....|....cccccc....|....cccccc....
    ..cCCCcccccc..|..cCCCcccccc..|..cCCCcccccc..
    .cCCcccccccccd|.cCCcccccccccd|.cCCcccccccccd
    ccCckcccckcccd|ccCccccccccccd|ccCcccccckcckd
    cccckckkckccdd|ccccccccccccdd|cccccccckckkkd
    dccccccccccddd|dccccccccccddd|dccccccccccddd
    .dddddddddddd.|.dddddddddddd.|.dddddddddddd.
    """,
    """
    .....cccc.....|.....cccc.....|.....cccc.....
    ....cCCccc....|....cCCccc....|....cCCccc....
    ...cCCccccd...|...cCCccccd...|...cCCccccd...
    ...cCcccccd...|...cCcccccd...|...cCcccccd...
    ...cckcckcd...|...cCcccccd...|...ccccckckd..
    ...cckcckcd...|...cccccccd...|...ccccckckd..
    ..ccccccccdd..|..ccccccccdd..|..ccccccccccd.
    ..ccccckkcdd..|..ccccccccdd..|..ccccccckkcd.
    ..ccccccccdd..|..ccccccccdd..|..ccccccccccd.
    ..dcccccdddd..|..dcccccdddd..|..dcccccccddd.
    ...dddddddd...|...dddddddd...|...dddddddd...
    """,
)
NOTHING = part(0, "..............")
OTHERS: dict[str, tuple[Part, Poses]] = {
    "slime": (NOTHING, SLIME),
    "ghost": (
        part(
            2,
            """
            ....CCcccc....|....CCcccc....|....CCcccc....
            ...CCcccccc...|...CCcccccc...|...CCcccccc...
            ..CCcccccccc..|..CCcccccccc..|..CCcccccccc..
            ..CckkcckkcC..|..CcccccccccC.|..Cccccckkckk.
            ..CckkcckkcC..|..Cccccccccd..|..Cccccckkckk.
            ..cccccccccc..|..cccccccccd..|..cccccccccck.
            .ccccckkccccd.|.cccccccccccd.|..cccccccckkc.
            cccccckkcccdcd|cccccccccccdcd|..ccccCCccccc.
            c.cccccccccd.d|c.ccccccccdd.d|..cccccccccd..
            ..ccccccccdd..|..ccccccccdd..|..ccccccccdd..
            ..ccccccccdd..|..ccccccccdd..|.cccccccccdd..
            """,
        ),
        TATTERS,
    ),
    "spider": (
        part(
            4,
            """
            ..............|....cCCccc....|.cCCccc.......
            .....sSSs.....|...cCCccccd...|cCCcccccd.....
            ....sSSsss....|..cCCcqqcccd..|cCccqccccdSs..
            ...SsqssqsS...|..cCcqqqqccd..|ccqqqqccdSSsss
            ...sqqssqqs...|..cccqqqqcdd..|cccqqcccdssqsq
            ...ssqssqst...|..dcccqqccdd..|dccccccddsqqsq
            ...tsswwsst...|...dccccddd...|.dccccddttssst
            ....twttwt....|....dddddd....|..dddddd.twwt.
            """,
        ),
        SPIDER_LEGS,
    ),
    "crab": (
        part(
            4,
            """
            .ss........ss.|.ss........ss.|...ss......ss.
            s..s.w..w.s..s|s..s......s..s|..s..s.w.ws..s
            ss.s.k..k.s.ss|ss.s......s.ss|..ss.s.k.ks.ss
            .sss.s..s.sss.|.sss......sss.|...sss.s.s.sss
            ..s.SSssss.s..|..s.SSssss.s..|....s.SSsss.s.
            ..sSSsssssss..|..sSSsssssss..|...sSSsssssss.
            ...SsssssssS..|...SststtstS..|...Ssssssskks.
            ...ssskkssst..|...sssssssst..|...sssssssssst
            ...tssssssst..|...tsssssstt..|...tsssssssst.
            ....tttttt....|....tttttt....|....tttttttt..
            """,
        ),
        CRAB_LEGS,
    ),
    "snail": (
        part(
            3,
            """
            ...w......w...|.....cCCc.....|....cCCc...w..
            ...k.cCCc.k...|...cCCcccd....|..cCCcccd..k.w
            ...s.Ccccds...|..cCCdddccd...|.cCCdddccd.s.k
            ...sSssssss...|..cCddCcddcd..|.cCdcCcdcd.s.s
            ..cSSsssssscd.|.cCcdCcccdcd..|.cdcCddcdcdsss
            ..cskssssksd..|.cccdcccddcd..|.ccdccdcdcdSss
            ..cskssssksd..|.dcccddddccd..|.cccdddccddsks
            ..dsskkkkstd..|..dcccccccdd..|.ddccccccddsss
            ...tsssssst...|...ddddddddd..|..dddddddddsst
            ...ttsssstt...|....ssssst....|.sssssssssssst
            """,
        ),
        FOOT,
    ),
    "tank": (
        part(
            1,
            """
            ......yy......|......yy......|.....yy.......
            ......rr......|......rr......|.....rr.......
            ...EEeeeeer...|...EEeeeeer...|...EEeeeer....
            ..eEeeeeeeer..|..eEeeeeeeer..|..eEeeeeeer...
            ..ekkkkkkkkr..|..eEeeeeeeer..|..eEeekkkkkk..
            ..ekyykkyykr..|..eerrrrrrer..|..eeeekkyykk..
            ..ekkkkkkkkr..|..eeeeeeeeer..|..eeeekkkkkk..
            ..reerrrreer..|..reeeeeeerr..|..reeeeeerr...
            .aaAAaaaaaab..|.aaAAaaaaaabb.|.aAAaaaaaaaab.
            .aAaayqqaabb..|.aAaabbbbaabb.|.aAaabyybaabb.
            .bbbbbbbbbbb..|.bbbbbbbbbbbb.|.bbbbbbbbbbbb.
            """,
        ),
        WHEELS,
    ),
    "bat": (
        part(
            4,
            """
            ....s....s....|....s....s....|......s..s....
            ....ss..ss....|....ss..ss....|......ss.ss...
            ....SSssss....|....SSssss....|......SSsss...
            ....syssys....|....Ssssss....|......Ssssys..
            ....skssks....|....ssssss....|.....sssssks..
            ....sswwst....|....ssssst....|.....sssssws..
            .....tsst.....|.....ssst.....|....sssstst...
            .....ssst.....|.....ssst.....|.....ssst.....
            ......st......|......st......|......st......
            """,
        ),
        WINGS,
    ),
}
KINDS = BODIES | OTHERS


@dataclass(frozen=True)
class Creature:
    """A creature by the name of its kind."""

    kind: str
    bob: int = 1
    """Rows that the body sinks in a step."""

    def cell(self, view: int, step: int, left: bool = False) -> Grid:
        """Draws one cell; step is 0 standing, and 1 and -1 the two steps; left faces left."""
        body, under = KINDS[self.kind]
        grid = blank()
        under[step % 3].laid(grid, view)
        body.laid(grid, view, dy=abs(step) * self.bob)
        outline(grid)
        return grid[:, ::-1] if left and view == SIDE else grid
