"""Temporary files for dragging and copying sprites into other programs."""

from __future__ import annotations

import tempfile
from pathlib import Path

from studio.app.background.model_jobs import SpriteSelection
from studio.app.state.settings import Settings
from studio.core import files, pictures
from studio.exports import sheets

_MAX_FILES = 64  # a drag waits for the files; more sprites become a sheet


class DragFiles:
    """PNG files in a temporary folder that exists until `close`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def write(self, picked: SpriteSelection) -> list[Path]:
        """Write sprites as PNG files, or many sprites as one sheet, into a new folder; return the files.

        Earlier files stay: another program may read them. Raises OSError.
        """
        from studio.exports.png import encode_png

        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="sprites-", ignore_cleanup_errors=True)
        self._count += 1
        folder, written = Path(self._folder.name) / str(self._count), list[Path]()
        folder.mkdir()
        if not self._settings.saves_details():
            picked = picked.without_details()
        texts = [picked.texts_of(slice(index, index + 1)) for index in range(len(picked.sprites))]
        items = list(zip(picked.sprites, picked.names, texts, strict=True))
        if len(items) > _MAX_FILES:
            items = [(pictures.tile(picked.sprites, sheets.COLUMNS), "sprites", picked.texts_of(slice(None)))]
        for pixels, name, details in items:
            written.append(files.free_path(folder / f"{files.safe_name(name, 'sprite')}.png"))
            written[-1].write_bytes(encode_png(pixels, details))
        return written

    def close(self) -> None:
        """Delete all files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
