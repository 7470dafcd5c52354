"""Files of sprites on their way into other programs: there as long as the session is."""

from __future__ import annotations

import tempfile
from pathlib import Path

from studio.app.background.model_jobs import SpriteSelection
from studio.app.state.settings import Settings
from studio.core import files, pictures
from studio.exports import sheets

_MOST_FILES = 64  # a drag waits until they are written; more are carried as one sheet


class DragFiles:
    """PNG files in a temporary folder, which is made when it is needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._times = 0

    def write(self, picked: SpriteSelection) -> list[Path]:
        """A file of each sprite, or one sheet of very many, in a folder of their own: what was carried before may still
        be read. Nothing waits for the disk. Raises OSError.
        """
        from studio.exports.png import encode_png

        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="sprites-", ignore_cleanup_errors=True)
        self._times += 1
        folder, written = Path(self._folder.name) / str(self._times), list[Path]()
        folder.mkdir()
        if not self._settings.saves_details():
            picked = picked.without_details()
        texts = [picked.texts_of(slice(place, place + 1)) for place in range(len(picked.sprites))]
        carried = list(zip(picked.sprites, picked.names, texts, strict=True))
        if len(carried) > _MOST_FILES:
            carried = [(pictures.tile(picked.sprites, sheets.COLUMNS), "sprites", picked.texts_of(slice(None)))]
        for pixels, name, said in carried:
            written.append(files.free_path(folder / f"{files.safe_name(name, 'sprite')}.png"))
            written[-1].write_bytes(encode_png(pixels, said))
        return written

    def close(self) -> None:
        """Remove them all."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
