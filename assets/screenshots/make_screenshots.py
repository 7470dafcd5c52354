"""Drive the real window through the main job, and take the pictures of README and guide in both themes.

    python assets/screenshots/make_screenshots.py [--sprites FOLDER] [--minutes 3] [--without-training]

FOLDER holds the sprites for the pictures of Sprites, Train and Generate; by default the demo sprites. Runs and settings
go to a temporary folder. Without QT_QPA_PLATFORM the window is drawn off screen.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from PySide6.QtCore import Qt, QThread
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication

from studio.app import theme
from studio.app.application import Studio
from studio.app.background.jobs import TrainingRequest
from studio.app.pages.runs.table import Column
from studio.core import paths
from studio.core.arrays import Rgba
from studio.data.pixels.editing import NamedSprite, rectangle_mask
from studio.data.sprites import Sprites

HERE = Path(__file__).resolve().parent
LONGEST_WAIT_S = 120.0
SCHEMES: tuple[theme.Scheme, ...] = ("light", "dark")
SCREEN = {
    "name": "pictures",
    "x": 0,
    "y": 0,
    "width": 1600,
    "height": 1200,
    "dpr": 1.0,
}  # of a window that is drawn off screen
WALK = "ghosts.png#ghosts_000", "slimes.png#slimes_001"


def wait(condition: Callable[[], object], seconds: float = LONGEST_WAIT_S) -> None:
    """Let the window live until `condition` holds. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the window did not get there")
        QApplication.processEvents()
        QThread.msleep(10)


def settle(seconds: float = 1.5) -> None:
    """Let everything that is on its way be drawn."""
    end = time.monotonic() + seconds
    wait(lambda: time.monotonic() > end, seconds + 1)


def take(studio: Studio, app: QApplication, name: str) -> None:
    """Save a picture of the window in the light and in the dark theme, with 256 colours: a third of the size."""
    for scheme in SCHEMES:
        theme.apply(app, scheme)
        settle()
        pixels = studio.window.grab().toImage().convertToFormat(QImage.Format.Format_RGB888)
        picture = Image.frombuffer(
            "RGB", (pixels.width(), pixels.height()), bytes(pixels.constBits()), "raw", "RGB", pixels.bytesPerLine(), 1
        )
        picture.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(
            HERE / f"{name}-{scheme}.png", optimize=True
        )


def write_sheet(sprites: Rgba, path: Path) -> None:
    """A sheet as artists keep them: twelve sprites a row, two pixels apart, and nothing beside it that says so."""
    side, across, apart = sprites.shape[1], 12, 2
    rows = math.ceil(len(sprites) / across)
    sheet = Image.new("RGBA", (across * (side + apart) + apart, rows * (side + apart) + apart))
    for number, sprite in enumerate(sprites):
        row, column = divmod(number, across)
        sheet.paste(Image.fromarray(sprite), (apart + column * (side + apart), apart + row * (side + apart)))
    sheet.save(path)


def open_sprites(studio: Studio, folder: Path) -> Sprites:
    """Open a folder and wait until its colours are counted and the doctor has looked."""
    session, window = studio.session, studio.window
    window.show_page("sprites")
    window.open_paths([folder])
    wait(lambda: folder in session.open_sprites.paths and session.open_sprites.sprites)
    wait(lambda: session.catalog.recipes and session.catalog.devices and not session.job_queue.running())
    assert session.open_sprites.sprites is not None
    return session.open_sprites.sprites


def look_over(studio: Studio, app: QApplication) -> None:
    """The doctor, and a sheet being cut."""
    window = studio.window
    sprites = open_sprites(studio, paths.demo_sprites())
    window.sprites.tabs.setCurrentIndex(1)
    take(studio, app, "doctor")
    window.sprites.tabs.setCurrentIndex(0)
    with tempfile.TemporaryDirectory() as folder:
        sheet = Path(folder) / "potions.png"
        write_sheet(sprites.rgba[sprites.labels == sprites.class_names.index("potions")][:54], sheet)
        window.open_paths([sheet])
        wait(lambda: window.sprites.cutting.is_open)
        take(studio, app, "cutting")
        window.sprites.cutting.close_view()


def train_and_draw(studio: Studio, app: QApplication, sprites: Sprites, minutes: float) -> None:
    """Training and generating: a picture of each."""
    session, window = studio.session, studio.window
    window.show_page("train")
    recipe = session.catalog.recipes["generator"]
    device = session.catalog.device(session.catalog.fastest)
    assert device is not None
    config = recipe.Config(minutes=minutes, width=48)
    session.training.start(TrainingRequest(sprites, recipe, config, device))
    wait(session.training.is_live)
    wait(lambda: session.training.chunk and session.training.chunk.elapsed_s > 0.95 * 60 * minutes, 120 * minutes + 60)
    take(studio, app, "train")
    wait(lambda: not session.training.is_busy())
    window.show_page("generate")
    settle(3.0)
    window.generate.generate.click()
    wait(window.generate.results.grid.visible_count)
    take(studio, app, "generate")
    fill_in(studio, sprites)
    take(studio, app, "editor")
    window.generate.editing.close_editor.click()


def try_out(studio: Studio, app: QApplication, minutes: float) -> None:
    """An experiment, and the map of the sprites by what an autoencoder has learnt of them."""
    session, lab = studio.session, studio.window.lab
    studio.window.show_page("lab")
    names = [lab.experiments.item(row).data(Qt.ItemDataRole.UserRole) for row in range(lab.experiments.count())]
    lab.experiments.setCurrentRow(names.index("break-it"))
    lab.start.click()
    wait(lambda: session.lab.running is not None)
    wait(lambda: session.lab.running is None, 400.0)
    take(studio, app, "lab")
    recipe, device = session.catalog.recipes["autoencoder"], session.catalog.device(session.catalog.fastest)
    assert session.open_sprites.sprites is not None and device is not None
    session.training.start(
        TrainingRequest(session.open_sprites.sprites, recipe, recipe.Config(minutes=minutes), device)
    )
    wait(session.training.is_busy)
    wait(lambda: not session.training.is_busy(), 120 * minutes + 60)
    lab.tabs.setCurrentWidget(lab.map)
    wait(lambda: lab.map.choice.recipe() is recipe)
    lab.map.show_map.click()
    wait(lambda: session.sprite_map.shown is not None)
    shown = session.sprite_map.shown
    assert shown is not None
    first, last = (shown.sprites.names.index(name) for name in WALK)
    lab.map.select(first)
    lab.map.end_walk(last)
    take(studio, app, "map")


def keep(studio: Studio, app: QApplication) -> None:
    """The runs, with what is said of them, and two that wait."""
    session, window = studio.session, studio.window
    recipe, device = session.catalog.recipes["generator"], session.catalog.device(session.catalog.fastest)
    assert session.open_sprites.sprites is not None and device is not None
    window.show_page("runs")
    codes, drawn = (run.path for run in session.runs.runs)
    session.run_notes.rename(codes, "codes for the map")
    session.run_notes.star([drawn], starred=True)
    session.run_notes.change_notes(codes, note=None, tags=("map",))
    session.run_notes.change_notes(drawn, note="Clean outlines; ghosts are best.", tags=("demo", "good"))
    for seed, minutes in enumerate((30.0, 60.0)):
        config = recipe.Config(minutes=minutes, seed=seed)
        session.queue.add(TrainingRequest(session.open_sprites.sprites, recipe, config, device), session.setup.history)
    wait(lambda: len(session.queue.runs) == 2)
    rows = window.runs.table.model()
    settle()
    names = [rows.index(row, Column.NAME).data() for row in range(rows.rowCount())]
    window.runs.table.selectRow(names.index(drawn.name))
    settle(3.0)
    take(studio, app, "runs")


def fill_in(studio: Studio, sprites: Sprites) -> None:
    """The upper part of a potion of the data is drawn anew."""
    session, page = studio.session, studio.window.generate
    label = next((number for number, name in enumerate(sprites.class_names) if "potion" in name), 0)
    number = int((sprites.labels == label).argmax())
    page.editing.open_sprite(NamedSprite(sprites.rgba[number].copy(), "potion", sprites.class_names[label]))
    editor = page.editing.editor
    edit, side = editor.edit(), sprites.size
    editor.replace(edit.with_keep(rectangle_mask((0, 0), (side - 1, side // 2), side), stays=False))
    page.editing.draw.click()
    wait(lambda: not session.inference.is_busy())


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sprites", type=Path, default=paths.demo_sprites(), metavar="FOLDER")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--without-training", action="store_true", help="the pictures of the Sprites page alone")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["STUDIO_HOME"] = home
        screen = Path(home) / "screen.json"
        screen.write_text(json.dumps({"screens": [SCREEN]}))
        os.environ.setdefault("QT_QPA_PLATFORM", f"offscreen:configfile={screen}")
        app = QApplication(sys.argv[:1])
        studio = Studio(app, sprites=[])
        studio.window.resize(1280, 800)
        studio.window.show()
        look_over(studio, app)
        sprites = open_sprites(studio, chosen.sprites)
        take(studio, app, "sprites")
        if not chosen.without_training:
            train_and_draw(studio, app, sprites, chosen.minutes)
            open_sprites(studio, paths.demo_sprites())
            try_out(studio, app, chosen.minutes)
            keep(studio, app)
        studio.session.close()


if __name__ == "__main__":
    main()
