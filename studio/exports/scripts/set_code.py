"""The parts of an exported training script that only models of sets need."""

from studio.exports.loader_code import DRAW_REST

LAYOUT = """\
    sets: Layout  # which sprites are the cells of a set
"""

READ_LAYOUT = """, Layout.read(names)"""

STACKED_SETS = '''
@dataclass
class Layout:
    """M sets (characters) of C cells (views and frames)."""

    cells: list[str]  # names of the cells
    table: NDArray[np.int64]  # [M, C], index of the sprite; -1 if the set lacks the cell

    @classmethod
    def read(cls, names: dict[str, Any]) -> Layout:
        """Return the layout of a run's data set."""
        cells = names["sets.cells"]
        return cls(cells, np.array(names["sets.table"]).reshape(-1, len(cells)))

@dataclass
class StackedSets:
    """M sets as training examples. The cells of a set are stacked as channels."""

    rgba: NDArray[np.uint8]  # [M, S, S, 4 C], straight alpha; a missing cell is transparent
    targets: NDArray[np.float32]  # [M, C], 1 if the set has the cell, else 0

    def __len__(self) -> int:
        return len(self.rgba)
'''

TAKE_SETS = """
    @property
    def cells(self) -> list[str]:
        return self.sets.cells

    def take(self, indices: NDArray[np.int64]) -> Sprites:
        columns = (array[indices] for array in (self.rgba, self.labels, self.targets, self.groups, self.is_test))
        becomes = np.full(len(self) + 1, -1)  # new indices; the last is that of missing cells
        becomes[indices] = np.arange(len(indices))
        table = becomes[self.sets.table]
        layout = Layout(self.cells, table[(table >= 0).any(1)])
        return Sprites(*columns, self.class_names, self.target_names, layout)

    def stacked_sets(self, indices: NDArray[np.int64]) -> StackedSets:
        is_chosen = np.append(np.isin(np.arange(len(self)), indices), False)
        table = self.sets.table[is_chosen[self.sets.table].any(1)]  # sets with one of these sprites
        cells = self.rgba[table]  # [M, C, S, S, 4]
        cells[table < 0] = 0
        rgba = cells.transpose(0, 2, 3, 1, 4).reshape(len(table), SIZE, SIZE, -1)
        return StackedSets(rgba, (table >= 0).astype(np.float32))
"""

READ_CELL_FOLDERS = '''
def read_folder(folder: Path) -> Sprites:
    """Read PNG files with equal names from a subfolder per cell: down/hero.png and left/hero.png are one set."""
    paths = sorted(folder.rglob("*.png"))
    cells = sorted({path.parent.relative_to(folder).as_posix() for path in paths})
    names, rows = np.unique([path.name for path in paths], return_inverse=True)
    table = np.full((len(names), len(cells)), -1)
    for number, (path, row) in enumerate(zip(paths, rows)):
        table[row, cells.index(path.parent.relative_to(folder).as_posix())] = number
    zeros = np.zeros(len(paths), np.int64)
    columns = read_images(paths), zeros, np.zeros((len(paths), 0), np.float32), rows, zeros > 0
    return Sprites(*columns, ["set"], [], Layout(cells, table))
'''

STACKED = """\
    sprites = sprites.stacked_sets(training)
    training = np.arange(len(sprites))
"""

COMPLETE = (
    DRAW_REST
    + '''
def show(network: nn.Module, sprites: Sprites) -> None:
    """Save a sheet of up to 16 validation sets, a row each, with the first cell given and the others drawn."""
    validation = np.setdiff1d(np.arange(len(sprites)), training_indices(sprites))
    if not len(validation):  # a small data set has no validation set
        validation = training_indices(sprites)
    stacked = sprites.stacked_sets(validation)
    cells = torch.from_numpy(stacked.rgba[:16]).unflatten(3, (-1, 4)).permute(0, 3, 1, 2, 4)  # [M, C, S, S, 4]
    first = torch.from_numpy(stacked.targets[:16].argmax(1))  # of the cells that a set has
    given = torch.arange(cells.shape[1]) == first[:, None]
    save_sheet(draw_rest(network, cells.contiguous(), given).flatten(0, 1).numpy(), cells.shape[1])
'''
)
