"""The cells of a training script: what each says, the sources that it shows and the code that it adds to them.

They need torch, numpy and pillow alone. Names in capitals and `config` are set in the cell before them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from studio.core.config import TrainingConfig
from studio.exports.base import ExportableModel
from studio.exports.source_code import collect

PACKAGES = ("torch", "numpy")  # that the sources may import
_OF_A_BATCH = ("Batch", "BatchRng")


@dataclass(frozen=True)
class Cell:
    """Words for learners, names of classes and functions whose sources come first, and code that follows them."""

    title: str
    words: str
    sources: tuple[str, ...] = ()
    code: str = ""


_SPRITES = '''
@dataclass
class Sprites:
    rgba: NDArray[np.uint8]  # [N, S, S, 4], straight alpha
    labels: NDArray[np.int64]  # [N], places in class_names
    targets: NDArray[np.float32]  # [N, T], the numbers that go with each sprite, NaN where one is missing
    groups: NDArray[np.int64]  # [N], the same number for sprites that are alike
    is_test: NDArray[np.bool_]  # [N], which are a test set
    class_names: list[str]
    target_names: list[str]
    size = SIZE

    def __len__(self) -> int:
        return len(self.rgba)
{take}
def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """Such a file is the length of a header in eight bytes, the header, which is JSON, and the arrays' bytes."""
    data, arrays = bytearray(path.read_bytes()), {}
    start = 8 + int.from_bytes(data[:8], "little")
    kinds = {"U8": np.uint8, "I64": np.int64, "F32": np.float32}
    for name, about in json.loads(data[8:start]).items():
        if name != "__metadata__":
            count, first = int(np.prod(about["shape"])), start + about["data_offsets"][0]
            arrays[name] = np.frombuffer(data, kinds[about["dtype"]], count, first).reshape(about["shape"])
    return arrays

def read_run(path: Path) -> Sprites:
    """The sprites of a run. Their texts are lines of JSON: a key and a value, a long list in several lines."""
    arrays, texts = read_safetensors(path), {}
    for key, value in map(json.loads, arrays["texts"].tobytes().splitlines()):
        texts[key] = texts.get(key, []) + value if isinstance(value, list) else value
    rows = [arrays[name] for name in ("rgba", "labels", "targets", "groups")]
    is_test = arrays.get("is_test", np.zeros(len(rows[0]))) != 0
    return Sprites(*rows, is_test, texts["class_names"], texts["target_names"])

def read_pictures(paths: list[Path]) -> NDArray[np.uint8]:
    """Pictures as sprites, uint8 [N, SIZE, SIZE, 4]: centred, and cut or padded."""
    pictures = [Image.open(path).convert("RGBA") for path in paths]
    corners = [((picture.width - SIZE) // 2, (picture.height - SIZE) // 2) for picture in pictures]
    boxes = [(left, top, left + SIZE, top + SIZE) for left, top in corners]
    return np.stack([np.array(picture.crop(box)) for picture, box in zip(pictures, boxes)])
'''

_TAKE = """
    def take(self, chosen: NDArray[np.int64]) -> Sprites:
        rows = (array[chosen] for array in (self.rgba, self.labels, self.targets, self.groups, self.is_test))
        return Sprites(*rows, self.class_names, self.target_names)
"""

_CLASSES_OF_FOLDER = '''
def read_folder(folder: Path) -> Sprites:
    """The PNG files below a folder; the folder that each is in is its class."""
    paths = sorted(folder.rglob("*.png"))
    classes = [path.parent.relative_to(folder).as_posix() for path in paths]
    class_names, labels = np.unique(classes, return_inverse=True)
    nothing, groups = np.zeros((len(paths), 0), np.float32), np.arange(len(paths))
    return Sprites(read_pictures(paths), labels, nothing, groups, groups < 0, class_names.tolist(), [])
'''

_NUMBERS_OF_FOLDER = '''
def read_folder(folder: Path) -> Sprites:
    """The PNG files that labels.csv in the folder names: lines like 'file,price' and 'sword.png,12.5'."""
    (_, *names), *rows = [row for row in csv.reader((folder / "labels.csv").read_text("utf-8").splitlines()) if row]
    rgba = read_pictures([folder / row[0] for row in rows])
    numbers = np.array([[float(value or "nan") for value in row[1:]] for row in rows], np.float32)
    groups = np.arange(len(rows))
    return Sprites(rgba, np.zeros(len(rows), np.int64), numbers, groups, groups < 0, ["sprite"], names)
'''

_SPLIT = '''
def learnt_from(sprites: Sprites) -> NDArray[np.int64]:
    """The places of all others; a test set that the sprites bring along is not learnt from either."""
    places = np.flatnonzero(~sprites.is_test | sprites.is_test.all())
    heldout, group = heldout_groups(sprites.groups[places], sprites.labels[places], config.holdout, config.seed)
    return places[~np.isin(group, heldout)]
'''

_BATCHES = '''
@dataclass
class Batch:
{fields}

def make_batch(sprites: Sprites, training: NDArray[np.int64], step: int, rng: torch.Generator) -> Batch:
    """Each epoch goes through all sprites in an order of its own, and a batch may reach into the next one."""
    start, count = step * config.batch_size, len(training)
    epochs = range(start // count, (start + config.batch_size - 1) // count + 1)
    order = np.concatenate([shuffled_indices(config.seed, epoch, count) for epoch in epochs])
    chosen = training[order[start % count :][: config.batch_size]]
    rgba = torch.from_numpy(sprites.rgba[chosen]).to(DEVICE).permute(0, 3, 1, 2)
{augmented}    return Batch({values})
'''

# Of a batch, in this order: what each field holds, and its value.
_FIELDS = {
    "x": ("Tensor  # float32 [B, 4, S, S], premultiplied RGBA in [-1, 1]", "to_input(rgba)"),
    "y": ("Tensor  # int64 [B], classes", "torch.tensor(sprites.labels[chosen]).to(DEVICE)"),
    "augment_labels": (
        "Tensor  # float32 [B, 3]: whether each was mirrored, and how far it was moved",
        "augment_labels",
    ),
    "targets": ("Tensor  # float32 [B, T], numbers", "torch.tensor(sprites.targets[chosen]).to(DEVICE)"),
    "progress": ("float  # how much of the training is done, 0 to 1", "step / config.steps"),
}

_LABELS = """\
    augment_labels = torch.zeros(len(chosen), 3, device=DEVICE)
"""

_SHIFT = """\
    offset = torch.randint(0, 2 * config.shift_px + 1, (2, len(rgba), 1), device=DEVICE, generator=rng)
    rgba, {moves} = shift(rgba, config.shift_px, offset)
"""

_FLIP = """\
    flipped = torch.rand(len(chosen), device=DEVICE, generator=rng) < 0.5
    rgba = torch.where(flipped[:, None, None, None], rgba.flip(-1), rgba)
"""

_FLIP_LABEL = """\
    augment_labels[:, 0] = flipped
"""

_NETWORK = '''
def make_network(sprites: Sprites) -> {network}:
    """A new network. Its first weights are drawn from torch's generator: the same seed gives the same ones."""
    torch.manual_seed(config.seed)
    network = {network}(**arguments(config, sprites))
{buffers}    return network.to(DEVICE).to(memory_format=torch.channels_last)  # convolutions are faster like this
'''

_BUFFERS = """\
    for name, values in statistics({looked_at}, config).items():
        network.get_buffer(name).copy_(values)
"""

_LOSS = '''
class BatchRng:
    """Random numbers, a row for each sprite of a batch."""

    def __init__(self, generator: torch.Generator, batch: Batch) -> None:
        self.count, self.how = len(batch.x), {"device": batch.x.device, "generator": generator}
'''

_RANDOM = {
    "randn": '''
    def randn(self, *shape: int) -> Tensor:
        """Standard normal."""
        return torch.randn((self.count, *shape), **self.how)
''',
    "rand": '''
    def rand(self, *shape: int) -> Tensor:
        """Uniform in [0, 1)."""
        return torch.rand((self.count, *shape), **self.how)
''',
}

_ADAMW = '''
def make_optimizers(network: nn.Module) -> list[torch.optim.Optimizer]:
    """AdamW (Loshchilov and Hutter 2019); norms and biases are not pulled towards zero."""
    matrices = [weight for weight in network.parameters() if weight.ndim > 1]
    vectors = [weight for weight in network.parameters() if weight.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return [torch.optim.AdamW(groups, betas=(0.9, 0.99), fused=True)]  # the rates are set in each step
'''

_ADAM = '''
def make_optimizers(network: nn.Module) -> list[torch.optim.Optimizer]:
    """Adam (Kingma and Ba 2015)."""
    return [torch.optim.Adam(network.parameters(), fused=True)]  # the rates are set in each step
'''

_MUON = '''
class Muon(torch.optim.Optimizer):
    """Momentum made orthogonal (Jordan 2024), an update as large as AdamW's (Liu et al. 2025)."""

    @torch.no_grad()
    def step(self) -> None:
        (group,) = self.param_groups
        alike = defaultdict(list)  # weights of one shape are done together; each is taken as a matrix [out, rest]
        for weight in group["params"]:
            momentum = self.state[weight].setdefault("momentum", torch.zeros_like(weight)).lerp_(weight.grad, 0.05)
            ahead = weight.grad.lerp(momentum, 0.95)  # Nesterov's
            alike[weight.shape].append((weight, ahead.flatten(1)))
        for pairs in alike.values():
            weights, matrices = zip(*pairs)
            rate = group["lr"] * 0.2 * max(matrices[0].shape) ** 0.5
            for weight, update in zip(weights, orthogonalize(torch.stack(matrices))):
                weight.mul_(1 - group["lr"] * group["weight_decay"]).sub_(rate * update.view(weight.shape))

def make_optimizers(network: nn.Module) -> list[torch.optim.Optimizer]:
    """Muon for convolutions, AdamW for all else; norms and biases are not pulled towards zero."""
    kernels = [weight for weight in network.parameters() if weight.ndim == 4]
    matrices = [weight for weight in network.parameters() if weight.ndim > 1 and weight.ndim != 4]
    vectors = [weight for weight in network.parameters() if weight.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, betas=(0.9, 0.99), fused=True)  # the rates are set in each step
    return [adamw, Muon(kernels, {"lr": 0.0, "weight_decay": config.weight_decay})]
'''

_TRAINING = '''
def train(sprites: Sprites) -> tuple[nn.Module, list[float]]:
    """A new network, trained: its averaged weights, and the loss of each step."""
    training, network, rng, losses = learnt_from(sprites), make_network(sprites), torch.Generator(DEVICE), []
    optimizers, average = make_optimizers(network), copy.deepcopy(network).eval().requires_grad_(False)
    for step in range(config.steps):
        rng.manual_seed(step_seed(config.seed, step))  # all that is random in a step follows from its number
        batch = make_batch(sprites, training, step, rng)
        error = loss(network, batch, config, BatchRng(rng, batch))
        network.zero_grad()
        error.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), config.clip_grad_norm)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(config, step, step / config.steps)
            optimizer.step()
        decay = ema_decay(config.ema_halflife_sprites, (step + 1) * config.batch_size, config.batch_size)
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), network.parameters()):
                mean.lerp_(weight, 1 - decay)
        losses.append(error.item())  # waits for a GPU: the studio looks at its losses every 50 ms, all at once
        if step % 50 == 0 or step + 1 == config.steps:
            print(f"step {step:6,}  loss {losses[-1]:.4f}")
    for mean, value in zip(average.buffers(), network.buffers()):
        mean.copy_(value)
    return average, losses

def trained() -> nn.Module:
    """The network with the weights that the studio has trained, which lie beside this file."""
    network = {network}(**ARGUMENTS)
    network.load_state_dict({name: torch.from_numpy(array) for name, array in read_safetensors(WEIGHTS).items()})
    return network.to(DEVICE).eval()
'''

_SHEET = '''
def save_sheet(sprites: NDArray[np.uint8], columns: int = 8, scale: int = 4) -> None:
    """Write sprites, uint8 [N, S, S, 4], as one picture."""
    cells = np.concatenate([sprites, np.zeros((-len(sprites) % columns, *sprites.shape[1:]), np.uint8)])
    sheet = np.vstack([np.hstack(row) for row in np.split(cells, len(cells) // columns)])
    Image.fromarray(sheet.repeat(scale, 0).repeat(scale, 1)).save(SHEET)
    print(f"{len(sprites)} sprites are in {SHEET}")
'''

_SAMPLE = '''
@torch.no_grad()
def sample(network: nn.Module, count: int = 16, seed: int = 0, guidance: float = 1.5, steps: int = 10) -> Tensor:
    """New sprites of all classes in turn: uint8 [count, S, S, 4], straight alpha."""
    labels = torch.arange(count, device=DEVICE) % network.classes
    *_, x = draw(network, labels, guidance, steps, seed)
    return to_rgba(x)

def show(network: nn.Module, sprites: Sprites) -> None:
    save_sheet(sample(network).numpy())
'''

_PREDICT = '''
@torch.no_grad()
def predict(network: nn.Module, x: Tensor) -> Tensor:
    """Of x as in `Batch`: {predicted}."""
    return network(x.to(DEVICE)).float(){softmax}.cpu()

def show(network: nn.Module, sprites: Sprites) -> None:
    """{shown}"""
    others = np.setdiff1d(np.arange(len(sprites)), learnt_from(sprites))
    others = sprites.take(others if len(others) else learnt_from(sprites))  # of a small set none are held out
    said = predict(network, to_input(torch.from_numpy(others.rgba).permute(0, 3, 1, 2))).numpy()
'''

_CLASSIFY = (
    _PREDICT.replace("{predicted}", "class probabilities float32 [B, K]")
    .replace("{softmax}", ".softmax(1)")
    .replace(
        "{shown}",
        "How often the class is right, and a sheet of sprites in the order of the classes that they are given.",
    )
    + """\
    print(f"Right: {(said.argmax(1) == others.labels).mean():.1%} of {len(others)} sprites")
    save_sheet(others.rgba[np.argsort(said.argmax(1), kind="stable")])
"""
)

_MEASURE = (
    _PREDICT.replace("{predicted}", "numbers float32 [B, T], in their own units")
    .replace("{softmax}", "")
    .replace(
        "{shown}",
        "How far off each number is, and a sheet of sprites in the order of the first number that they are given.",
    )
    + """\
    for name, error in zip(sprites.target_names, np.nanmean(np.abs(said - others.targets), 0)):
        print(f"{name}: off by {error:.4g} on average, over {len(others)} sprites")
    save_sheet(others.rgba[np.argsort(said[:, 0], kind="stable")])
"""
)

_MAIN = """\
if __name__ == "__main__":
{threads}    sprites = read_folder(DATA) if DATA.is_dir() else read_run(DATA)
    network, losses = train(sprites) if TRAIN else (trained(), [])
    np.savetxt(LOSSES, losses, fmt="%.9g", header="the loss of each step")
    show(network, sprites)
"""

_THREADS = """\
    torch.set_num_threads(config.threads)
"""

_RESULTS = {
    "sprites": Cell(
        "New sprites",
        "Sampling starts from noise. The studio also snaps what it draws to the palette and the levels of alpha of the "
        "sprites that were learnt from, and finds copies of them.",
        ("draw", "to_rgba"),
        _SHEET + _SAMPLE,
    ),
    "labels": Cell("What it says of sprites", "Judged by sprites that were held out.", (), _SHEET + _CLASSIFY),
    "numbers": Cell("What it says of sprites", "Judged by sprites that were held out.", (), _SHEET + _MEASURE),
}


def stand_ins(config: TrainingConfig) -> dict[str, str]:
    """What the script has in the place of types that the sources name."""
    own = type(config)
    configs = {kind.__name__: own.__name__ for kind in own.__mro__ if issubclass(kind, TrainingConfig)}
    return {**configs, "Spec": "Sprites", "Value": "Any"}


def cells_for(model: ExportableModel) -> list[Cell]:
    """The cells after the settings. Of what a batch holds and of random numbers they make what the loss asks for."""
    network, config = str(model.architecture["class"]), model.training.config
    items = [item for item in model.training.portable if item.__name__ == "loss"]
    used = re.findall(r"\.(\w+)", collect(items, {*stand_ins(config), *_OF_A_BATCH}, PACKAGES).code)
    random = "".join(code for name, code in _RANDOM.items() if name in used)
    is_muon = config.optimizer == "muon" and any(weight.ndim == 4 for weight in model.network.parameters())
    return [
        Cell(
            "Sprites",
            "The run's own sprites, or a folder of PNG files. The studio reads much more: sheets, Aseprite, archives. "
            "It mends what it finds, and learns from sets that are larger than the memory.",
            (),
            _SPRITES.replace("{take}", _TAKE if model.makes != "sprites" or _has_statistics(model) else "")
            + (_NUMBERS_OF_FOLDER if model.makes == "numbers" else _CLASSES_OF_FOLDER),
        ),
        Cell(
            "Held-out sprites",
            "Some are kept aside, to check on what the network has not seen. Sprites that are alike stay together: a "
            "twin would tell. The studio looks for near twins; of a folder, each sprite is on its own here.",
            ("heldout_groups",),
            _SPLIT,
        ),
        _batches(config, used),
        Cell("Network", "", (network, "arguments", "statistics", "subsample"), _network(model)),
        Cell("Loss", "What training makes smaller.", ("loss",), _LOSS + random),
        Cell(
            "Optimizer, schedule, average",
            "The rate rises, stays, then falls. What is used in the end is a moving average of the weights.",
            (*(("orthogonalize",) if is_muon else ()), "learning_rate", "ema_decay"),
            _MUON if is_muon else _ADAM if config.optimizer == "adam" else _ADAMW,
        ),
        Cell(
            "Training",
            "The studio's loop also saves checkpoints, goes back to one when a loss is no number, splits batches that "
            "the device has no room for, checks on held-out sprites, shows samples, and computes in 16 bits.",
            (),
            _TRAINING.replace("{network}", network),
        ),
        _RESULTS[model.makes],
        Cell("Run it", "", (), _MAIN.replace("{threads}", _THREADS if config.threads else "")),
    ]


def _batches(config: TrainingConfig, used: Collection[str]) -> Cell:
    """used: the attributes that the loss reads, those of a batch among them."""
    words = (
        "Which sprites a step learns from, and how they are changed, follows from the seed and the step alone: so the "
        "studio goes on exactly where it stopped. It keeps all sprites on the device, as bytes."
    )
    if not (config.shift_px or config.flip):
        words += " It can also move and mirror them, which this run did not."
    sources = ("step_seed", "shuffled_indices", *(("shift",) if config.shift_px else ()), "to_input")
    has_labels = "augment_labels" in used
    augmented = _LABELS if has_labels else ""
    if config.shift_px:
        augmented += _SHIFT.replace("{moves}", "augment_labels[:, 1:]" if has_labels else "_")
    if config.flip:
        augmented += _FLIP + (_FLIP_LABEL if has_labels else "")
    fields = {name: parts for name, parts in _FIELDS.items() if name == "x" or name in used}
    code = _BATCHES.replace("{fields}", "\n".join(f"    {name}: {kind}" for name, (kind, _) in fields.items()))
    code = code.replace("{augmented}", augmented).replace("{values}", ", ".join(value for _, value in fields.values()))
    return Cell("Batches", words, sources, code)


def _has_statistics(model: ExportableModel) -> bool:
    """Whether its network must know something of the sprites."""
    return any(item.__name__ == "statistics" for item in model.training.portable)


def _network(model: ExportableModel) -> str:
    names = {item.__name__ for item in model.training.portable}
    code = _NETWORK.replace("{buffers}", _BUFFERS if _has_statistics(model) else "")
    looked_at = (
        "subsample(sprites, learnt_from(sprites))" if "subsample" in names else "sprites.take(learnt_from(sprites))"
    )
    code = code.replace("{looked_at}", looked_at)
    return code.replace("{network}", str(model.architecture["class"]))
