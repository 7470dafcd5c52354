"""The sprites' licence and credits. The user types both; runs and model cards repeat both unchecked."""

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
    """Licence and credits of sprites, stored in `Sprites.origin` and run.json, and written into model cards."""

    licence: str = setting("", "Licence for model cards, for example 'CC0 1.0', 'CC BY 4.0' or 'my own work'.")
    credits: str = setting("", "Authors and sources of the sprites, for model cards.")

    @classmethod
    def for_sources(cls, sources: Sequence[Path]) -> Rights:
        """Return the bundled demo art's licence and credits if every source is demo art, else empty texts."""
        demo = [folder.resolve() for folder in (paths.demo_sprites(), paths.demo_characters())]
        is_demo = bool(sources) and all(any(map(path.resolve().is_relative_to, demo)) for path in sources)
        return cls("CC0 1.0", "drawn by Sprite Training Studio's own scripts") if is_demo else cls()

    @classmethod
    def from_origin(cls, origin: Mapping[str, Any]) -> Rights:
        """Return the licence and credits stored in `origin`, a `Sprites.origin`."""
        return cls(*(str(origin.get(name, "")) for name in ("licence", "credits")))

    def add_to(self, sprites: Sprites) -> Sprites:
        """Return a copy of `sprites` with this licence and credits in `Sprites.origin`; empty texts are left out."""
        own = {name: text.strip() for name, text in self.to_json().items() if isinstance(text, str)}
        others = {key: value for key, value in sprites.origin.items() if key not in own}
        return sprites.with_origin({**others, **{name: text for name, text in own.items() if text}})
