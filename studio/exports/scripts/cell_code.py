"""Source code of the training script that is not copied from the studio's own modules.

The code needs torch, numpy and Pillow. Names in capitals and `config` are defined in the script's settings cell.
Placeholders in braces are filled in by cells.py.
"""

from __future__ import annotations

from studio.exports.source_code import fill_in

SPRITES = '''
@dataclass
class Sprites:
    """A data set of N sprites of S x S pixels in K classes, with T numbers for each sprite."""

    rgba: NDArray[np.uint8]  # [N, S, S, 4], straight (not premultiplied) alpha
    labels: NDArray[np.int64]  # [N], indices into class_names
    targets: NDArray[np.float32]  # [N, T], numbers to predict; NaN if missing
    groups: NDArray[np.int64]  # [N], equal for near duplicates
    is_test: NDArray[np.bool_]  # [N], whether the sprite belongs to a test set
    class_names: list[str]
    target_names: list[str]
{layout}    size = SIZE

    def __len__(self) -> int:
        return len(self.rgba)
{take}
def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays of a .safetensors file: 8 bytes header length, a JSON header, then the bytes of the arrays."""
    data, arrays = bytearray(path.read_bytes()), {}
    start = 8 + int.from_bytes(data[:8], "little")
    dtypes = {"U8": np.uint8, "BOOL": np.bool_, {int16}"I64": np.int64, "F32": np.float32}
    for name, about in json.loads(data[8:start]).items():
        if name != "__metadata__":
            count, offset = int(np.prod(about["shape"])), start + about["data_offsets"][0]
            arrays[name] = np.frombuffer(data, dtypes[about["dtype"]], count, offset).reshape(about["shape"])
    return arrays

def read_run(path: Path) -> Sprites:
    """Read the data set of a run. Its names are JSON lines of [key, value]; a long list has several lines."""
    arrays, names = read_safetensors(path), {}
    for key, value in map(json.loads, arrays["texts"].tobytes().splitlines()):
        names[key] = names.get(key, []) + value if isinstance(value, list) else value
    columns = [arrays[name] for name in ("rgba", "labels", "targets", "groups")]
    is_test = arrays.get("is_test", np.zeros(len(columns[0]))) != 0
{read_values}    return Sprites(*columns, is_test, names["class_names"], names["target_names"]{read_layout})

def read_images(paths: list[Path]) -> NDArray[np.uint8]:
    """Read images as uint8 [N, SIZE, SIZE, 4]. Other sizes are centred, then padded or cropped."""
    images = [Image.open(path).convert("RGBA") for path in paths]
    corners = [((image.width - SIZE) // 2, (image.height - SIZE) // 2) for image in images]
    boxes = [(left, top, left + SIZE, top + SIZE) for left, top in corners]
    return np.stack([np.array(image.crop(box)) for image, box in zip(images, boxes)])
'''

TAKE = """
    def take(self, indices: NDArray[np.int64]) -> Sprites:
        columns = (array[indices] for array in (self.rgba, self.labels, self.targets, self.groups, self.is_test))
        return Sprites(*columns, self.class_names, self.target_names)
"""

READ_CLASS_FOLDERS = '''
def read_folder(folder: Path) -> Sprites:
    """Read all PNG files in a folder. The class of a sprite is the path of its subfolder."""
    paths = sorted(folder.rglob("*.png"))
    classes = [path.parent.relative_to(folder).as_posix() for path in paths]
    class_names, labels = np.unique(classes, return_inverse=True)
    no_targets, groups = np.zeros((len(paths), 0), np.float32), np.arange(len(paths))
    return Sprites(read_images(paths), labels, no_targets, groups, groups < 0, class_names.tolist(), [])
'''

READ_LABELS_CSV = '''
def read_folder(folder: Path) -> Sprites:
    """Read the PNG files listed in labels.csv, for example 'file,price' followed by 'sword.png,12.5'."""
    (_, *names), *rows = [row for row in csv.reader((folder / "labels.csv").read_text("utf-8").splitlines()) if row]
    rgba = read_images([folder / row[0] for row in rows])
    targets = np.array([[float(value or "nan") for value in row[1:]] for row in rows], np.float32)
    groups = np.arange(len(rows))
    return Sprites(rgba, np.zeros(len(rows), np.int64), targets, groups, groups < 0, ["sprite"], names)
'''

SPLIT = '''
def training_indices(sprites: Sprites) -> NDArray[np.int64]:
    """Return the indices of the training set: all sprites except the validation set and the test set, if any."""
    indices = np.flatnonzero(~sprites.is_test | sprites.is_test.all())
    heldout, group = heldout_groups(sprites.groups[indices], sprites.labels[indices], config.holdout, config.seed)
    return indices[~np.isin(group, heldout)]
'''

BATCHES = '''
@dataclass
class Batch:
{fields}

def make_batch(sprites: {examples}, training: NDArray[np.int64], step: int, rng: torch.Generator) -> Batch:
    """Return the batch of a step. Each epoch shuffles the training set; a batch may span two epochs."""
    start, count = step * config.batch_size, len(training)
    epochs = range(start // count, (start + config.batch_size - 1) // count + 1)
    order = np.concatenate([shuffled_indices(config.seed, epoch, count) for epoch in epochs])
    indices = training[order[start % count :][: config.batch_size]]  # [B]
    rgba = torch.from_numpy(sprites.rgba[indices]).to(DEVICE).permute(0, 3, 1, 2)  # uint8 [B, 4, S, S]
{augmented}    return Batch({values})
'''

# Possible fields of a batch, in order: declaration and value.
BATCH_FIELDS = {
    "x": ("Tensor  # float32 [B, 4, S, S], premultiplied RGBA in [-1, 1]", "to_input(rgba)"),
    "y": ("Tensor  # int64 [B], class indices", "torch.tensor(sprites.labels[indices]).to(DEVICE)"),
    "augment_labels": ("Tensor  # float32 [B, 3]: mirrored or not, shift in x and in y", "augment_labels"),
    "targets": ("Tensor  # float32 [B, T], numbers to predict", "torch.tensor(sprites.targets[indices]).to(DEVICE)"),
    "progress": ("float  # share of the training that is done, 0 to 1", "step / config.steps"),
}

AUGMENT_LABELS = """\
    augment_labels = torch.zeros(len(indices), 3, device=DEVICE)
"""

SHIFT = """\
    offset = torch.randint(0, 2 * config.shift_px + 1, (2, len(rgba), 1), device=DEVICE, generator=rng)
    rgba, {moves} = shift(rgba, config.shift_px, offset)
"""

FLIP = """\
    flipped = torch.rand(len(indices), device=DEVICE, generator=rng) < 0.5
    rgba = torch.where(flipped[:, None, None, None], rgba.flip(-1), rgba)
"""

FLIP_LABEL = """\
    augment_labels[:, 0] = flipped
"""

NETWORK = '''
def make_network(sprites: Sprites) -> {network}:
    """Create a network with random weights. They depend on config.seed only."""
    torch.manual_seed(config.seed)
    network = {network}(**arguments(config, sprites))
{buffers}    return network.to(DEVICE).to(memory_format=torch.channels_last)  # speeds up convolutions
'''

BUFFERS = """\
    # Buffers hold statistics of the training set; the optimizer does not change them.
    for name, values in statistics({sampled}, config).items():
        network.get_buffer(name).copy_(values)
"""

BATCH_RNG = '''
class BatchRng:
    """Draws random tensors [B, ...] with a row for each sprite of a batch."""

    def __init__(self, generator: torch.Generator, batch: Batch) -> None:
{batch}        self.count, self.options = len(batch.x), {"device": batch.x.device, "generator": generator}
'''

KEPT_BATCH = """\
        self.batch = batch
"""

RANDOM = {
    "randn": '''
    def randn(self, *shape: int) -> Tensor:
        """Draw from the standard normal distribution: float32 [B, *shape]."""
        return torch.randn((self.count, *shape), **self.options)
''',
    "rand": '''
    def rand(self, *shape: int) -> Tensor:
        """Draw from the uniform distribution over [0, 1): float32 [B, *shape]."""
        return torch.rand((self.count, *shape), **self.options)
''',
    "previous": '''
    def previous(self) -> Batch:
        """Return a batch with the example before each example."""
        return Batch(*(part.roll(1, 0) if isinstance(part, Tensor) else part for part in vars(self.batch).values()))
''',
}

ADAMW = '''
def make_optimizers(network: nn.Module) -> list[torch.optim.Optimizer]:
    """AdamW (Loshchilov and Hutter 2019). Norms and biases get no weight decay."""
    matrices = [weight for weight in network.parameters() if weight.ndim > 1]
    vectors = [weight for weight in network.parameters() if weight.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return [torch.optim.AdamW(groups, betas=(0.9, 0.99), fused=True)]  # train() sets the learning rate
'''

ADAM = '''
def make_optimizers(network: nn.Module) -> list[torch.optim.Optimizer]:
    """Adam (Kingma and Ba 2015)."""
    return [torch.optim.Adam(network.parameters(), fused=True)]  # train() sets the learning rate
'''

MUON = '''
class Muon(torch.optim.Optimizer):
    """Orthogonalised momentum (Jordan 2024), scaled to the size of AdamW's updates (Liu et al. 2025)."""

    @torch.no_grad()
    def step(self) -> None:
        (group,) = self.param_groups
        by_shape = defaultdict(list)  # weights of equal shape are orthogonalised together
        for weight in group["params"]:  # [out, in, height, width]
            momentum = self.state[weight].setdefault("momentum", torch.zeros_like(weight)).lerp_(weight.grad, 0.05)
            update = weight.grad.lerp(momentum, 0.95)  # Nesterov momentum
            by_shape[weight.shape].append((weight, update.flatten(1)))  # matrix [out, in * height * width]
        for pairs in by_shape.values():
            weights, updates = zip(*pairs)
            scale = group["lr"] * 0.2 * max(updates[0].shape) ** 0.5
            for weight, update in zip(weights, orthogonalize(torch.stack(updates))):
                weight.mul_(1 - group["lr"] * group["weight_decay"]).sub_(scale * update.view(weight.shape))

def make_optimizers(network: nn.Module) -> list[torch.optim.Optimizer]:
    """Muon for convolutions, AdamW for all other weights. Norms and biases get no weight decay."""
    kernels = [weight for weight in network.parameters() if weight.ndim == 4]
    matrices = [weight for weight in network.parameters() if weight.ndim > 1 and weight.ndim != 4]
    vectors = [weight for weight in network.parameters() if weight.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": config.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, betas=(0.9, 0.99), fused=True)  # train() sets the learning rate
    return [adamw, Muon(kernels, {"lr": 0.0, "weight_decay": config.weight_decay})]
'''

TRAINING = '''
def train(sprites: Sprites) -> tuple[nn.Module, list[float]]:
    """Train a new network. Return a copy with averaged (EMA) weights, and the loss of each step."""
    training, network, rng, losses = training_indices(sprites), make_network(sprites), torch.Generator(DEVICE), []
    optimizers, average = make_optimizers(network), copy.deepcopy(network).eval().requires_grad_(False)
{stacked}    for step in range(config.steps):
        rng.manual_seed(step_seed(config.seed, step))  # the step number alone decides all random numbers of a step
        batch = make_batch(sprites, training, step, rng)
        batch_loss = loss(network, batch, config, BatchRng(rng, batch))
        network.zero_grad()
        batch_loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), config.clip_grad_norm)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(config, step, step / config.steps)
            optimizer.step()
        decay = ema_decay(config.ema_halflife_sprites, (step + 1) * config.batch_size, config.batch_size)
        with torch.no_grad():
            for mean, weight in zip(average.parameters(), network.parameters()):
                mean.lerp_(weight, 1 - decay)  # mean = decay * mean + (1 - decay) * weight
        losses.append(batch_loss.item())  # waits for the GPU; the studio copies its losses every 50 ms instead
        if step % 50 == 0 or step + 1 == config.steps:
            print(f"step {step:6,}  loss {losses[-1]:.4f}")
    for mean, value in zip(average.buffers(), network.buffers()):
        mean.copy_(value)
    return average, losses

def load_trained() -> nn.Module:
    """Load the weights that the studio trained, from the file next to this script."""
    network = {network}(**ARGUMENTS)
    network.load_state_dict({name: torch.from_numpy(array) for name, array in read_safetensors(WEIGHTS).items()})
    return network.to(DEVICE).eval()
'''

SAVE_SHEET = '''
def save_sheet(sprites: NDArray[np.uint8], columns: int = 8, scale: int = 4) -> None:
    """Save sprites, uint8 [N, S, S, 4], as an enlarged sprite sheet."""
    cells = np.concatenate([sprites, np.zeros((-len(sprites) % columns, *sprites.shape[1:]), np.uint8)])
    sheet = np.vstack([np.hstack(row) for row in np.split(cells, len(cells) // columns)])
    Image.fromarray(sheet.repeat(scale, 0).repeat(scale, 1)).save(SHEET)
    print(f"Saved {len(sprites)} sprites in {SHEET}")
'''

SAMPLE = '''
@torch.no_grad()
def sample(network: nn.Module, count: int = 16, seed: int = 0, guidance: float = 1.5, steps: int = 10) -> Tensor:
    """Draw new sprites, cycling through the classes. Return uint8 [count, S, S, 4], straight alpha.

    guidance: scale of classifier-free guidance (Ho and Salimans 2022); 1 means none. steps: of the ODE solver.
    """
    labels = torch.arange(count, device=DEVICE) % network.classes
    *_, x = draw(network, labels, guidance, steps, seed)  # float32 [count, 4, S, S]; draw yields x after each step
    return to_rgba(x)

def show(network: nn.Module, sprites: Sprites) -> None:
    """Save a sheet of new sprites."""
    save_sheet(sample(network).numpy())
'''

_PREDICT = '''
@torch.no_grad()
def predict(network: nn.Module, x: Tensor) -> Tensor:
    """Return {predicted}. x: float32 [B, 4, S, S], premultiplied RGBA in [-1, 1]."""
    return network(x.to(DEVICE)).float(){softmax}.cpu()

def show(network: nn.Module, sprites: Sprites) -> None:
    """Print {printed}, and save the validation sprites sorted by {sorted_by}."""
    validation = np.setdiff1d(np.arange(len(sprites)), training_indices(sprites))
    if not len(validation):  # a small data set has no validation set
        validation = training_indices(sprites)
    sprites = sprites.take(validation)
    predicted = predict(network, to_input(torch.from_numpy(sprites.rgba).permute(0, 3, 1, 2))).numpy()
'''

CLASSIFY = fill_in(_PREDICT, {
    "predicted": "class probabilities, float32 [B, K]", "softmax": ".softmax(1)", "printed": "the accuracy",
    "sorted_by": "predicted class",
}) + """\
    print(f"Accuracy: {(predicted.argmax(1) == sprites.labels).mean():.1%} of {len(sprites)} sprites")
    save_sheet(sprites.rgba[np.argsort(predicted.argmax(1), kind="stable")])
"""  # fmt: skip

REGRESS = fill_in(_PREDICT, {
    "predicted": "numbers, float32 [B, T], in their own units", "softmax": "", "printed": "the mean absolute errors",
    "sorted_by": "the first predicted number",
}) + """\
    for name, error in zip(sprites.target_names, np.nanmean(np.abs(predicted - sprites.targets), 0)):
        print(f"{name}: mean absolute error {error:.4g} over {len(sprites)} sprites")
    save_sheet(sprites.rgba[np.argsort(predicted[:, 0], kind="stable")])
"""  # fmt: skip

MAIN = """\
if __name__ == "__main__":
{threads}    sprites = read_folder(DATA) if DATA.is_dir() else read_run(DATA)
    network, losses = train(sprites) if TRAIN else (load_trained(), [])
    np.savetxt(LOSSES, losses, fmt="%.9g", header="loss of each step")
    show(network, sprites)
"""

THREADS = """\
    torch.set_num_threads(config.threads)
"""
