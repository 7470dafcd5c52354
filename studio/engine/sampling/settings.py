"""The settings of requests for new sprites and for completed sets. Imports no torch: the window starts faster."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, cast

import numpy as np
from numpy.typing import NDArray

from studio.core.arrays import Mask, Rgba
from studio.core.config import Config, setting
from studio.data.colour.constraints import MIRRORS, NONE, SEAMLESS, Constraints
from studio.data.tiles.layout import MOST_VARIANTS, TileSetSpec
from studio.data.tiles.tile_set import TileKind
from studio.engine.sampling.class_choice import read_mixture, read_names

MAX_SPRITES: Final = 10_000  # per request
MAX_CANDIDATES: Final = 64  # per set
MIN_LIKED: Final = 3  # liked sprites for best_of; fewer tell too little about the user's taste


@dataclass(frozen=True)
class GenerateSettings(Config):
    """The settings of a request for new sprites."""

    count: int = setting(64, "Number of sprites to draw.", label="Number", unit="sprites", low=1, high=MAX_SPRITES)
    class_name: str = setting("", "Class to draw. Empty: all classes, evenly.", label="Class")
    in_proportion: bool = setting(False, "Draw classes in proportion to the training sprites instead of evenly.")
    mix: str = setting(
        "", "Mix classes by weight: 'sword:0.6,potion:0.4'. Put a class with a comma in double quotes.",
        label="Mixture", legacy_default="",
    )  # fmt: skip
    attributes: str = setting(
        "", "Attributes to draw: 'element=fire,kind=shield'. All other attributes stay open, as does the class without "
        "a class name.",
        label="Attributes", legacy_default="",
    )  # fmt: skip
    best_of: int = setting(
        1, "Draw this many sprites for each result and keep the closest to your liked sprites. Off: keep all.",
        label="Best of", low=1, high=16, low_text="Off", legacy_default=1,
    )  # fmt: skip
    tiles: str = setting(
        NONE, "Draw a tile set, whose tiles fit together: corner, blob or dual-grid tiles.",
        label="Tile set", choices=(NONE, "corner", "blob", "dual-grid"), legacy_default=NONE,
    )  # fmt: skip
    terrains: str = setting(
        "", "Two to four classes for a tile set: 'grass,water,transparent'. Empty: the classes of the mixture.",
        label="Terrains", legacy_default="",
    )  # fmt: skip
    variants: int = setting(
        1, "Variants of each tile in a tile set. A map uses all variants equally often.",
        label="Variants", low=1, high=MOST_VARIANTS, legacy_default=1,
    )  # fmt: skip
    seed: int = setting(0, "The same seed draws the same sprites.", low=0, high=2**31 - 1)
    strength: float = setting(
        0.5, "How much a start sprite may change: 0 leaves it unchanged, 1 ignores it.",
        low=0.0, high=1.0, legacy_default=0.5,
    )  # fmt: skip
    guidance: float = setting(
        1.5, "Guidance scale: 1 draws as trained, higher values follow the class more closely with less variety.",
        low=0.0, high=10.0,
    )  # fmt: skip
    steps: int = setting(10, "Solver steps per sprite: more steps are finer and slower.", low=1, high=1000)
    quick: bool = setting(
        False, "Draw with the distilled network: about five times faster, at a fixed guidance.", legacy_default=False
    )
    mirror: str = setting(NONE, "Draw symmetric sprites.", choices=MIRRORS, advanced=True, legacy_default=NONE)
    seamless: str = setting(
        NONE, "Draw tiles that repeat without seams.", choices=SEAMLESS, advanced=True, legacy_default=NONE
    )
    outline: str = setting(
        NONE, "Outline colour: 'dark' uses the sprite's darkest colour. Or give a colour, for example '#1a1c2c'.",
        advanced=True, legacy_default=NONE,
    )  # fmt: skip
    true_pixels: bool = setting(
        True, "Reduce the colours to the palette of the training sprites and harden edges. Off: keep the raw output."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        Constraints(outline=self.outline)  # raises UsageError for an invalid outline

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Create settings from JSON. Earlier versions stored 'corner_tiles' instead of 'tiles'. Raises UsageError."""
        if "corner_tiles" in values:
            values = {"tiles": "corner" if values["corner_tiles"] is True else NONE, **values}
            del values["corner_tiles"]
        return super().from_json(values)

    def tile_set_spec(self) -> TileSetSpec | None:
        """Return the tile set to draw; None for single sprites. Raises UsageError for terrains that form no set."""
        if self.tiles == NONE:
            return None
        names = read_names(self.terrains) or [name for name, share in read_mixture(self.mix) if share]
        return TileSetSpec(cast(TileKind, self.tiles), tuple(names), self.variants)

    def constraints(self, silhouette: NDArray[np.uint8] | None = None) -> Constraints:
        """Return the constraints on each sprite. Raises UsageError for terrains that form no tile set.

        silhouette: uint8 [S, S], the alpha of each pixel; None leaves the shape free.
        """
        return Constraints(self.mirror, self.seamless, self.outline, silhouette, self.tile_set_spec())


@dataclass(frozen=True)
class CompleteSettings(Config):
    """The settings of a request to complete sets."""

    count: int = setting(
        1, "Number of candidates for each character or, without given cells, of new characters.",
        label="Candidates", low=1, high=MAX_CANDIDATES,
    )  # fmt: skip
    seed: int = setting(
        0, "The same seed draws the same cells. The first candidate ignores the seed.", low=0, high=2**31 - 1
    )
    variety: float = setting(
        0.5, "How much candidates differ from the first candidate, which has the most likely colours.",
        low=0.0, high=2.0, low_text="None",
    )  # fmt: skip
    rounds: int = setting(
        16, "Rounds of drawing, except for the first candidate. More rounds are slower; pixels fit together better.",
        low=1, high=64, advanced=True,
    )  # fmt: skip
    palette: str = setting(
        "given", "Colours to draw with: those of the given cells, or also frequent colours of the training sprites.",
        choices=("given", "data"),
    )  # fmt: skip
    mirror: str = setting(
        "auto", "Draw right views as mirror images of left views. Auto: if the training sprites mirror them.",
        choices=("auto", "on", "off"), label="Right mirrors left",
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class GivenSets:
    """Sets with some given cells."""

    names: tuple[str, ...]  # a name per set
    cells: Rgba  # uint8 [M, C, S, S, 4], straight alpha; ignored where not given
    given: Mask  # bool [M, C], whether the cell is given
