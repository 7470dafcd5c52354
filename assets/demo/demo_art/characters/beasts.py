"""Animals on four legs and birds: bodies, and legs in three poses, from the front, from behind and facing right."""

from __future__ import annotations

from .cells import Part, part

Poses = tuple[Part, Part, Part]
"""Standing, after one step, and after the other."""


def poses(top: int, *texts: str) -> Poses:
    """Reads three drawings that begin in the same row."""
    stand, step, other = (part(top, text) for text in texts)
    return stand, step, other


PAWS = poses(
    12,
    """
    ....ss..ss....|....ss..ss....|..ss.tt.ss.tt.
    ....ss..ss....|....ss..ss....|..ss.tt.ss.tt.
    ....ss..ss....|....ss..ss....|..ss.tt.ss.tt.
    """,
    """
    ....ss..ss....|....ss..ss....|..ss.tt.tt.ss.
    ....tt..ss....|....tt..ss....|.ss..tttt..ss.
    ........ss....|........ss....|.ss...tt...ss.
    """,
    """
    ....ss..ss....|....ss..ss....|..tt.ss.ss.tt.
    ....ss..tt....|....ss..tt....|.tt..ssss..tt.
    ....ss........|....ss........|.tt...ss...tt.
    """,
)
CLAWS = poses(
    13,
    """
    ....a....a....|....a....a....|......a.b.....
    ...aa....aa...|....a....a....|......aaab....
    """,
    """
    ....a....a....|....a....a....|....a....b....
    .........aa...|.........a....|....aa...bb...
    """,
    """
    ....a....a....|....a....a....|....b....a....
    ...aa.........|....a.........|....bb...aa...
    """,
)
BODIES: dict[str, tuple[Part, Poses]] = {
    "cat": (
        part(
            3,
            """
            ...s......s...|...s......s...|s.......s..s..
            ..sas....sas..|..sss....sss..|ss......ss.ss.
            ..saaSssSaas..|..ssSSssSsss..|.s......sSssss
            ..SSsststsss..|..SSststsSss..|.s.....SSsksss
            ..sskssssksS..|..Ssststssss..|.sssssssssksaa
            ..sswwaawwss..|..ssssssssss..|..SsstSstsswww
            ...twwwwwwt...|...tssttsst...|..SststsstssS.
            ....swwwwt....|....sSttst....|..ssststssst..
            ....sswwst....|....ssttst....|..ttsssssstt..
            """,
        ),
        PAWS,
    ),
    "dog": (
        part(
            3,
            """
            ...SSssss.....|....SSssss....|........SSss..
            ..SSssssssss..|..SSssssssss..|.......SSssss.
            .aaSssssssaa..|.aaSssssssaa..|s.....aaSsksss
            .aasksssskaa..|.aassssssssaa.|ss....aasskssk
            .aasksssskaa..|.aassssssssaa.|.ss...aassswww
            .baswwkkwwsb..|.basssssssssb.|.ssSSssbssswww
            ..tswwwwwst...|..bsssSSssst..|..SSsssssssst.
            ....tqqt......|....sssStst...|..sssssssssst.
            ....swwst.....|....ssttst....|..tsttssssttt.
            """,
        ),
        PAWS,
    ),
    "sheep": (
        part(
            2,
            """
            .....hHHh.....|.....hHHh.....|.........hHh..
            ...hhHhhHhh...|...hhHhhHhh...|...hHHhHhhhhh.
            ..hHhhhhhhhj..|..hHhhhhhhhj..|..hHhhHHhssss.
            ..hssssssssh..|..hhhHhhHhhj..|.hHhhhhhssskss
            .tshkssssksht.|.hhHhhhhhHhhj.|.hhhHHhsssskss
            .tsskssssksst.|.hhhhHHhhhhhj.|.hHhhhhhtsssst
            ..hhssssssjh..|.hHhhhhhHhhjj.|.hhhhHHhhtttt.
            ..hhhtkktjhj..|.hhhHHhhhhhjj.|.jhHhhhHhhhj..
            ...jhhhhhjj...|..jhhhhhhhjj..|..jhhjhhjhj...
            ....jjjjjj....|...jjjhhjjj...|...jjjjjjj....
            """,
        ),
        PAWS,
    ),
    "boar": (
        part(
            3,
            """
            ..s..hHHh..s..|..s..hHHh..s..|.....hhHhh.s..
            ..sshhHhhhss..|..sshhHHhhss..|...hhHhhhhhss.
            ..SSshhhhsss..|..SSshHhhsss..|..SSshhhhsSss.
            .SSssshhssss..|.SSsshHhhsssS.|.SSssshhsssss.
            .SskssssskssS.|.SsssshhhssssS|.SssssssskssS.
            .sssaaaaasss..|.ssssshhsssst.|ssssssssssssaa
            .twsakakaswt..|.sssssstsssst.|s.sssssstsswka
            .twtaaaaatwt..|.tsssststssst.|.tsssssttswwa.
            ...tttttttt...|..tssttttsst..|..tttsstttttt.
            """,
        ),
        PAWS,
    ),
    "turtle": (
        part(
            4,
            """
            .....cCCc.....|.....cCCc.....|....cCCCcc....
            ...cCCcccdc...|...cCCdCCcc...|..cCCdccdcc...
            ..cCcdccdccd..|..cCcdcccdcd..|.cCcdccCdccd..
            .ccdSssssdccd.|.cCdccCCccdcd.|.cdccCCcdcdss.
            .cdSssssssdcd.|.ccdcCccccdcd.|ccCdccccdcSsss
            .ddskssssksdd.|.cdcdccccdcdd.|cCcddccddcsksS
            .aaskssssksaa.|.dcccddddcccd.|ddccdddccdsksS
            ..aasskksaab..|.ddccccccccdd.|aaddddddddsssk
            ...bbttttbb...|..aaaabbaaab..|.aaaaaaabbtst.
            """,
        ),
        PAWS,
    ),
    "chicken": (
        part(
            3,
            """
            .....qqq......|......qqq.....|.......qqq....
            .....qwqw.....|......wqq.....|.......wwqq...
            ....wwwwww....|....wwwwww....|......wwwwww..
            ....wkwwkw....|....wwwwww....|ww....wwwkww..
            ....wkyykw....|....wwwwww....|wew...wwwkwyy.
            ....wwyyww....|...wwwwwwww...|wewwwwwwwwwqy.
            ..wwwwqqwwww..|..wwewwwwwewe.|.wwwewwewwwq..
            ..wewwwwwwee..|..wewwewwewee.|.wwwwewwwwwww.
            ..eewwwwwwee..|..eewweewwee..|..ewwwwwwwwe..
            ...eewwwwee...|...eeweeweee..|...eewwwwee...
            """,
        ),
        CLAWS,
    ),
    "penguin": (
        part(
            2,
            """
            .....cCCc.....|.....cCCc.....|.....cCCc.....
            ....cCcccd....|....cCcccd....|....cCcccd....
            ...cwwccwwd...|...cCccccdd...|...cCccwwcd...
            ...cwkyykwd...|...cCccccdd...|...cCcwwkcyy..
            ...cwwyywwd...|...cCccccdd...|...cccwwwcy...
            ..ccwwwwwwcd..|..ccCcccccdd..|...ccccwwwd...
            .cccwwwwwwccd.|.cccCccccccdd.|..ccCCcwwwww..
            .cdcwwwwwwcdd.|.cdcCccccccdd.|..cccCcdwwww..
            .d.cwwwwwwd.d.|.d.cccccccdd.d|..ccccddwwww..
            ...cdwwwwed...|...cdccccddd..|..ddcccdwwwe..
            ....dewwed....|....ddccddd...|.d..ddddewe...
            """,
        ),
        CLAWS,
    ),
    "owl": (
        part(
            2,
            """
            ..s........s..|..s........s..|....s....s....
            ..ss.SSss.ss..|..ss.SSss.ss..|....ssSsss....
            ..SssssssssS..|..SSssssssss..|...SSsssssss..
            ..swwwsswwws..|..SsstssstsS..|...Sssswwwss..
            ..swkyssykws..|..ssssssssss..|...sssswwykw..
            ..swkkyykkws..|..stssstssst..|...sstswwkkyy.
            ..sswwyywwss..|..ssstssstss..|...ssssswwwyy.
            .ssaaaaaaaast.|.ssstssstssst.|..SsssstaaaaA.
            .stasaasaaatt.|.stsssstsstt..|..sstsstasaaa.
            .stAaasaasat..|.sttsstsssttt.|.ssssttaaasa..
            ..tbaaaaaabt..|..tttsssstt...|.stt.ttbaaab..
            """,
        ),
        CLAWS,
    ),
}
