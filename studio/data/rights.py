"""Licence and credits of the sprites, typed by the user and passed on to runs and model cards unchecked."""

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
    """Licence and credits, stored in the origin of the sprites (run.json) and written into model cards."""

    licence: str = setting("", "Licence for model cards, for example 'CC0 1.0', 'CC BY 4.0' or 'my own work'.")
    credits: str = setting("", "Authors and sources of the sprites, for model cards.")

    @classmethod
    def for_sources(cls, sources: Sequence[Path]) -> Rights:
        """Return the rights of the bundled demo sprites, and empty rights for other paths."""
        demo = paths.demo_sprites().resolve()
        is_demo = bool(sources) and all(path.resolve().is_relative_to(demo) for path in sources)
        return cls("CC0 1.0", "drawn by Sprite Training Studio's own scripts") if is_demo else cls()

    @classmethod
    def from_origin(cls, origin: Mapping[str, Any]) -> Rights:
        """Return the rights stored in `Sprites.origin`."""
        return cls(*(str(origin.get(name, "")) for name in ("licence", "credits")))

    def add_to(self, sprites: Sprites) -> Sprites:
        """Return `sprites` with licence and credits replaced in `Sprites.origin`; empty texts are not stored."""
        own = {name: text.strip() for name, text in self.to_json().items() if isinstance(text, str)}
        others = {key: value for key, value in sprites.origin.items() if key not in own}
        return sprites.with_origin({**others, **{name: text for name, text in own.items() if text}})
