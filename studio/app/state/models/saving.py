"""Save sprites in files for the user, and in temporary files for other programs."""

import re
import tempfile
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from studio.app.background import model_jobs
from studio.app.background.job_queue import JobQueue, Operation
from studio.app.background.model_jobs import SpriteSelection
from studio.app.state.catalog import EngineCatalog
from studio.app.state.settings import Settings
from studio.core import files, pictures
from studio.core.arrays import Rgba
from studio.data.images.kinds import DRAWING_SUFFIXES
from studio.exports import sheets
from studio.exports.sprites.base import SpriteExport

_SUFFIX = re.compile(rf"({'|'.join(map(re.escape, DRAWING_SUFFIXES))})(?=#|$)", re.IGNORECASE)
_MAX_FILES = 64  # a drag waits for the files, so more sprites go into a sheet


class SpriteSaving(QObject):
    """Saves sprites in files, with generation details unless the user excludes them."""

    saved = Signal(object)  # list of Path

    def __init__(self, job_queue: JobQueue, settings: Settings, catalog: EngineCatalog, parent: QObject) -> None:
        super().__init__(parent)
        self._job_queue, self._settings, self._catalog = job_queue, settings, catalog
        self._files: dict[bytes, Path] = {}  # last file of a sprite in this session, by pixel digest

    def file_of(self, sprite: Rgba) -> Path | None:
        """Return the last file with the sprite, uint8 [H, W, 4]; None for an unsaved sprite."""
        return self._files.get(pictures.pixel_digest(sprite))

    def save_files(self, folder: Path, picked: SpriteSelection) -> None:
        """Write a PNG file per sprite."""
        self._save("Saving sprites", partial(model_jobs.save_files, folder, self._with_details(picked)), picked)

    def save_file(self, path: Path, picked: SpriteSelection) -> None:
        """Write the selection's first sprite as the PNG file `path`."""
        self._save("Saving the sprite", partial(model_jobs.save_file, path, self._with_details(picked)), picked)

    def save_sprites(self, path: Path, form: SpriteExport, picked: SpriteSelection, columns: int | None) -> None:
        """Write the sprites in the format `form`. columns: columns in a sheet; None for the default."""
        write = partial(model_jobs.save_sprites, path, form, self._with_details(picked), columns)
        self._save("Saving sprites", write, picked)

    def save_samples(
        self, run: Path, step: int, path: Path, form: SpriteExport, picked: SpriteSelection, columns: int | None
    ) -> None:
        """Write a run's samples from `step` in the format `form`. columns: columns of a sheet; None for a default."""
        if self._settings.saves_details():
            drawing = [name for name, recipe in self._catalog.recipes.items() if recipe.makes == "sprites"]
            write = partial(model_jobs.save_samples, run, step, path, form, picked, columns, drawing)
            self._save("Saving samples", write, picked)
        else:
            self.save_sprites(path, form, picked, columns)

    def save_film(self, run: Path, path: Path, form: SpriteExport) -> None:
        """Write a timelapse of a run's samples in the format `form`."""
        write = partial(model_jobs.save_film, run, path, form, self._settings.saves_details())
        self._save("Saving timelapse", write)

    def save_table(self, path: Path, text: str) -> None:
        """Write a table as the CSV file `path`."""
        self._save("Saving table", partial(model_jobs.save_text, path, text))

    def _save(self, title: str, write: Operation[list[Path]], picked: SpriteSelection | None = None) -> None:
        """Write files in a job. picked: the sprites in the files, for `file_of`."""
        self._job_queue.run("files", title, write, partial(self._on_written, picked))

    def _on_written(self, picked: SpriteSelection | None, written: list[Path]) -> None:
        if picked is not None:
            count = len(picked.sprites)
            has_own_files = len(written) == count and picked.cells is None
            paths = written if has_own_files else written[:1] * count  # every sprite lies in the sheet
            self._files.update(zip(map(pictures.pixel_digest, picked.sprites), paths, strict=True))
        self.saved.emit(written)

    def _with_details(self, picked: SpriteSelection) -> SpriteSelection:
        return picked if self._settings.saves_details() else picked.without_details()


def _stem(name: str) -> str:
    """Return a sprite's name without the suffix of its file: 'orc.png#r1 c2' -> 'orc-r1 c2'."""
    return _SUFFIX.sub("", name).replace("#", "-")


class DragFiles:
    """PNG files in a temporary folder that exists until `close`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def write(self, picked: SpriteSelection) -> list[Path]:
        """Write sprites as PNG files, or many sprites as a sheet, into a new folder; return the files. Raises OSError.

        Keeps earlier files, because another program may still read them.
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
            written.append(files.free_path(folder / f"{files.output_name(_stem(name), 'sprite')}.png"))
            written[-1].write_bytes(encode_png(pixels, details))
        return written

    def close(self) -> None:
        """Delete all files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
