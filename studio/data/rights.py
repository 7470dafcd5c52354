"""What the user says of the rights in the sprites. Nothing of it is checked: it goes along, for those who ask later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studio.core import paths
from studio.core.config import Config, setting
from studio.data.sprites import Sprites


@dataclass(frozen=True)
class Rights(Config):
    """Kept in run.json with what the sprites were read from, and told by the cards of models."""

    licence: str = setting(
        "", "Licence of the sprites, such as 'CC0 1.0', 'CC BY 4.0' or 'my own work': it is told by models' cards."
    )
    credits: str = setting("", "Who made the sprites, and where they are from: it is told by models' cards.")

    @classmethod
    def known_of(cls, sources: Sequence[Path]) -> Rights:
        """Those in the sprites that come with the studio; nothing is known of others."""
        is_demo = bool(sources) and all(
            path.resolve().is_relative_to(paths.demo_sprites().resolve()) for path in sources
        )
        return cls("CC0 1.0", "drawn by Sprite Training Studio's own scripts") if is_demo else cls()

    @classmethod
    def of(cls, origin: Mapping[str, Any]) -> Rights:
        """Those that sprites of this origin brought along."""
        return cls(*(str(origin.get(name, "")) for name in ("licence", "credits")))

    def on(self, sprites: Sprites) -> Sprites:
        """The same sprites, which bring this along."""
        said = {name: text.strip() for name, text in self.to_json().items() if isinstance(text, str)}
        kept = {key: value for key, value in sprites.origin.items() if key not in said}
        return sprites.read_from({**kept, **{name: text for name, text in said.items() if text}})
