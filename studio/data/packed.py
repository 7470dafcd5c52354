"""`Sprites` in one file: a safetensors file that is checked when it is read back."""

from __future__ import annotations

from pathlib import Path

from studio.data.sprites import Sprites


def save(sprites: Sprites, path: Path) -> None:
    """Write `sprites` to `path` through a temporary file. Raises OSError."""
    raise NotImplementedError


def load(path: Path) -> Sprites:
    """Read what `save` wrote. Raises BadInputError when the file is missing, damaged or lies about itself."""
    raise NotImplementedError
