"""Code of exported training scripts for models with attributes."""

from studio.exports.loader_code import LABEL_OF, PROBABILITIES_BY_HEAD

LABELS = '''
LABELS = CLASS_NAMES + [f"{name}={value}" for name, values in ATTRIBUTES.items() for value in values]

def label_indices(table: NDArray[Any]) -> NDArray[np.float32]:
    """Convert indices of values, int [N, A], to indices in LABELS, float32 [N, A]; -1 stays for a missing value."""
    firsts = np.cumsum([len(CLASS_NAMES), *map(len, ATTRIBUTES.values())])[:-1]
    return np.where(table < 0, -1, table + firsts).astype(np.float32)
'''

SPEC = """
spec = SimpleNamespace(class_names=CLASS_NAMES, attributes=ATTRIBUTES)  # the meaning of LABELS
"""

READ_VALUES = """\
    columns[2] = label_indices(arrays["attributes"])  # instead of numbers
    names |= {"class_names": LABELS, "target_names": [*ATTRIBUTES]}
"""

READ_LABELS_CSV = '''
def read_folder(folder: Path) -> Sprites:
    """Read the PNG files listed in labels.csv, with a column for each attribute; an empty cell is no value.

    For example 'file,class,element' followed by 'sword.png,swords,fire'.
    """
    rows = [*csv.DictReader((folder / "labels.csv").read_text("utf-8").splitlines())]
    labels = np.array([CLASS_NAMES.index(row["class"]) for row in rows])
    columns = [[values.index(row[name]) if row[name] else -1 for row in rows] for name, values in ATTRIBUTES.items()]
    targets, groups = label_indices(np.stack(columns, 1)), np.arange(len(rows))
    rgba = read_images([folder / row["file"] for row in rows])
    return Sprites(rgba, labels, targets, groups, groups < 0, LABELS, [*ATTRIBUTES])
'''

SAMPLE = f'''{LABEL_OF}
@torch.no_grad()
def sample(
    network: nn.Module, count: int = 16, seed: int = 0, guidance: float = 1.5, steps: int = 10,
    attributes: dict[str, str] | None = None,
) -> Tensor:
    """Draw new sprites. Return uint8 [count, S, S, 4], straight alpha.

    guidance: scale of classifier-free guidance (Ho and Salimans 2022); 1 means none. steps: of the ODE solver.
    attributes: values such as {{'element': 'fire'}} of the sprites; without, the sprites cycle through the classes.
    """
    labels = torch.arange(count) % len(CLASS_NAMES)
    if attributes:
        labels = label_of("", attributes).expand(count, -1)
    *_, x = draw(network, labels.to(DEVICE), guidance, steps, seed)  # float32 [count, 4, S, S]; yields each step
    return to_rgba(x)

def show(network: nn.Module, sprites: Sprites) -> None:
    """Save a sheet of new sprites."""
    save_sheet(sample(network).numpy())
'''

CLASSIFY = f'''{PROBABILITIES_BY_HEAD}
@torch.no_grad()
def predict(network: nn.Module, x: Tensor) -> Tensor:
    """Return probabilities of LABELS, float32 [B, K]. x: float32 [B, 4, S, S], premultiplied RGBA in [-1, 1]."""
    return probabilities(network(x.to(DEVICE)).float()).cpu()

def show(network: nn.Module, sprites: Sprites) -> None:
    """Print the accuracies, and save the validation sprites sorted by predicted class."""
    validation = np.setdiff1d(np.arange(len(sprites)), training_indices(sprites))
    if not len(validation):  # a small data set has no validation set
        validation = training_indices(sprites)
    sprites = sprites.take(validation)
    predicted = predict(network, to_input(torch.from_numpy(sprites.rgba).permute(0, 3, 1, 2))).numpy()
    first, columns = 0, [sprites.labels, *sprites.targets.T]
    for name, values, labels in zip(["class", *ATTRIBUTES], [CLASS_NAMES, *ATTRIBUTES.values()], columns):
        is_right = predicted[:, first : first + len(values)].argmax(1) + first == labels
        print(f"Accuracy ({{name}}): {{is_right[labels >= 0].mean():.1%}} of {{(labels >= 0).sum()}} sprites")
        first += len(values)
    save_sheet(sprites.rgba[np.argsort(predicted[:, : len(CLASS_NAMES)].argmax(1), kind="stable")])
'''
