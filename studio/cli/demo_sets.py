"""Draw the pictures for `studio demo --sets`: held-out characters, completed from the first view."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from studio.cli.reporting import Reporter, run_job
from studio.core import files
from studio.core.arrays import Rgba
from studio.core.events import SetsDrawn
from studio.core.formatting import count
from studio.data.sprites import unstack
from studio.data.store import packed
from studio.engine.runs.folder import RunDir
from studio.exports.model_cards import provenance_metadata
from studio.exports.png import save_enlarged, save_files
from studio.exports.sprites.base import SpriteSet
from studio.exports.sprites.cells import Cells
from studio.exports.sprites.formats import sprite_exports

if TYPE_CHECKING:
    from studio.engine.models.model import TrainedModel
    from studio.engine.sampling.settings import GivenSets

_MOST = 6  # held-out characters in the comparison picture
_SCALE = 6

Rows = list[tuple[str, str]]  # file name and description


def complete_heldout(folder: Path, run: Path, model: TrainedModel, reporter: Reporter) -> tuple[list[Path], Rows]:
    """Complete the run's held-out characters from the first view; return the saved files, and a row per file.

    Saves the first character's given view, sheet and GIFs, and a picture comparing drawn and true views of every
    character.
    """
    from studio.engine.models.provenance import provenance_json
    from studio.engine.sampling.complete import complete
    from studio.engine.sampling.settings import CompleteSettings

    given = heldout_characters(run, model)
    name = files.output_name(given.names[0])
    what = count(len(given.names), "held-out character")
    reporter.print(f"3  Drawing the other views and frames of {what} from the first view")
    settings = CompleteSettings()
    drawn = run_job(complete(model, settings, given), reporter, SetsDrawn)
    about = {"model": drawn.model, "recipe": model.recipe.name, **settings.to_json()}
    about |= provenance_metadata([provenance_json(model)])
    first = SpriteSet(drawn.cells[0], about=about, cells=Cells.full(drawn.cell_names, len(drawn.cell_names)))
    view = save_files(folder, given.cells[0, :1], [f"{name} given"], {})
    sheet = sprite_exports()["sheet"].write(first, folder / f"{name}.png")
    gifs = sprite_exports()["gif"].write(first, folder / f"{name}.gif")
    pairs, columns = _compared(given.cells, drawn.cells, drawn.cell_names)
    compared = save_enlarged(folder / "drawn and true.png", pairs, columns, _SCALE, about)
    rows = [
        (compared.name, f"{what}, enlarged: the given view, the drawn views | the true views"),
        (view[0].name, f"the view of '{given.names[0]}' that was given"),
        (sheet[0].name, "the completed character as a sheet, with JSON: a row for each view"),
        (f"{gifs[0].name} ...", "its walk, a GIF for each view"),
    ]
    return [compared, *view, *sheet, *gifs], rows


def heldout_characters(run: Path, model: TrainedModel) -> GivenSets:
    """Return up to _MOST complete validation characters of a run, with the first cell given."""
    from studio.engine.runs.split import split_sprites
    from studio.engine.sampling.settings import GivenSets

    folder = RunDir(run)
    sprites = packed.load(folder.data)
    heldout = sprites.take(split_sprites(folder.record(), model.config, sprites).validation)
    stacked = heldout.stacked_sets(np.arange(len(heldout)))
    whole = np.flatnonzero((stacked.targets > 0).all(1))
    chosen = whole[np.linspace(0, len(whole) - 1, min(_MOST, len(whole))).round().astype(np.int64)]
    cells, given = unstack(stacked.rgba)[chosen], np.zeros((len(chosen), len(model.spec.cells)), np.bool_)
    given[:, 0] = True
    return GivenSets(tuple(heldout.sets.sets[index] for index in chosen), cells, given)


def _compared(true: Rgba, drawn: Rgba, cells: tuple[str, ...]) -> tuple[Rgba, int]:
    """Return the comparison's cells, and the number of cells in a line.

    A line shows the first frames of a character's views: the given view, the drawn views, a gap, and the true views.
    true, drawn: uint8 [N, C, S, S, 4].
    """
    from studio.recipes.set_tasks import first_of_rows

    leads = np.array(first_of_rows(cells))
    lines = np.concatenate([drawn[:, leads], np.zeros_like(drawn[:, :1]), true[:, leads][:, 1:]], 1)
    apart = np.pad(lines, ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)))  # a gap between cells
    return apart.reshape(-1, *apart.shape[2:]), apart.shape[1]
