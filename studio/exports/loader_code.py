"""Source code of the loader files (Python files that load and run an exported model), after the network.

The code needs torch and the standard library only. It uses CLASS_NAMES, SIZE, to_rgba and other names that
the rest of the loader file defines.
"""

from __future__ import annotations

from studio.exports.source_code import fill_in

LOAD = '''
def load(path: str | Path = WEIGHTS, device: str = "cpu") -> nn.Module:
    """Load the trained network. weights_only=True rejects pickled code."""
    weights = torch.load(path, map_location=device, weights_only=True)
    network = {network}(**ARCHITECTURE["arguments"]).to(device)
    network.load_state_dict(weights)
    return network.eval()
'''

SAVE_PNG = '''
def save_png(path: str | Path, sprites: Tensor, columns: int = 8) -> None:
    """Save sprites, uint8 [N, S, S, 4], as a PNG sprite sheet."""
    count, size = sprites.shape[:2]
    rows = -(-count // columns)
    cells = torch.zeros(rows * columns, size, size, 4, dtype=torch.uint8)
    cells[:count] = sprites
    lines = cells.view(rows, columns, size, size, 4).transpose(1, 2).reshape(rows * size, columns * size * 4)
    pixels = zlib.compress(b"".join(b"\\0" + bytes(line.tolist()) for line in lines))  # filter type 0: none
    header = struct.pack(">2I5B", columns * size, rows * size, 8, 6, 0, 0, 0)  # 8 bits per channel, RGBA
    with open(path, "wb") as file:
        file.write(b"\\x89PNG\\r\\n\\x1a\\n")
        for kind, data in ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))
'''

_SAMPLE = '''
@torch.no_grad()
def sample(
    network: nn.Module, count: int = 16, class_name: str = "", seed: int = 0, guidance: float = 1.5, steps: int = 10@A@
) -> Tensor:
    """Draw new sprites: uint8 [count, SIZE, SIZE, 4] on the CPU. An empty class_name cycles through the classes@B@"""
    labels = torch.arange(count) % len(CLASS_NAMES)
    if class_name:
        labels = torch.full((count,), CLASS_NAMES.index(class_name))
@CHOOSE@    for x in draw(network, labels.to(next(network.parameters()).device), guidance, steps, seed):
        pass  # draw yields x after each step; the last x holds the finished sprites
    return to_rgba(x)
'''
_SAMPLE_MAIN = """
if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw new sprites into a PNG file.")
    parser.add_argument("--class", dest="class_name", default="", choices=["", *CLASS_NAMES], metavar="NAME")
@FLAG@    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guidance", type=float, default=1.5)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", default="sprites.png")
    args = parser.parse_args()
    model = load(device=args.device)
    save_png(args.out, sample(model, args.count, args.class_name, args.seed, args.guidance, args.steps@ARGUMENT@))
    print(f"Saved {args.count} sprites of {SIZE} x {SIZE} pixels in {args.out}")
"""
_PLAIN = {"A": "", "B": ".", "CHOOSE": "", "FLAG": "", "ARGUMENT": ""}
_BY_ATTRIBUTES = {
    "A": ",\n    attributes: dict[str, str] | None = None,",
    "B": ".\n\n    attributes: a value for each attribute that is not open: {'element': 'fire'}. They leave the "
    "class open, too, unless\n    class_name says which.\n    ",
    "CHOOSE": "    if attributes:\n        labels = label_of(class_name, attributes).expand(count, -1)\n",
    "FLAG": '    about = f"one of the attributes {ATTRIBUTES}".replace("%", "%%")\n'
    '    parser.add_argument("--attribute", action="append", default=[], metavar="NAME=VALUE", help=about)\n',
    "ARGUMENT": ', dict(text.split("=", 1) for text in args.attribute)',
}
SAMPLE, SAMPLE_MAIN = (fill_in(code, _PLAIN, "@@") for code in (_SAMPLE, _SAMPLE_MAIN))
LABEL_OF = '''
def label_of(class_name: str, attributes: dict[str, str]) -> Tensor:
    """Return the label of a class, "" for any, and of attributes: float32 [K]. Attributes without a value stay open."""
    if unknown := attributes.keys() - ATTRIBUTES.keys():
        raise ValueError(f"The model has no attribute {min(unknown)!r}; its attributes are {', '.join(ATTRIBUTES)}.")
    label, first = torch.zeros(len(CLASS_NAMES) + sum(map(len, ATTRIBUTES.values()))), len(CLASS_NAMES)
    if class_name:
        label[CLASS_NAMES.index(class_name)] = 1
    for name, values in ATTRIBUTES.items():
        if name in attributes:
            label[first + values.index(attributes[name])] = 1
        first += len(values)
    return label

'''
SAMPLE_BY_ATTRIBUTES, SAMPLE_BY_ATTRIBUTES_MAIN = (
    fill_in(code, _BY_ATTRIBUTES, "@@") for code in (_SAMPLE, _SAMPLE_MAIN)
)

READ_IMAGE = '''
def read_image(path: str) -> Tensor:
    """Read an image as uint8 [SIZE, SIZE, 4], centred and cropped or padded. Needs Pillow."""
    from PIL import Image

    with Image.open(path) as image:
        rgba = image.convert("RGBA")
    left, top = (rgba.width - SIZE) // 2, (rgba.height - SIZE) // 2
    data = bytearray(rgba.crop((left, top, left + SIZE, top + SIZE)).tobytes())
    return torch.frombuffer(data, dtype=torch.uint8).view(SIZE, SIZE, 4)

'''

_PREDICT = '''
@torch.no_grad()
def forward(network: nn.Module, x: Tensor) -> Tensor:
    """Return {outputs}. x: float32 [N, 4, SIZE, SIZE], premultiplied RGBA in [-1, 1]."""
    return {start}network(x.to(next(network.parameters()).device)).float(){end}.cpu()


def predict(network: nn.Module, sprites: Tensor) -> Tensor:
    """Return {outputs}, ordered like {names}. sprites: uint8 [N, SIZE, SIZE, 4]."""
    return forward(network, to_input(sprites.permute(0, 3, 1, 2)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="{about} of images; without arguments, of an empty image.")
    parser.add_argument("images", nargs="*")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    model = load(device=args.device)
    sprites = [read_image(path) for path in args.images] or [torch.zeros(SIZE, SIZE, 4, dtype=torch.uint8)]
    for path, row in zip(args.images or ["(empty)"], predict(model, torch.stack(sprites))):
'''


PROBABILITIES = fill_in(_PREDICT, {
    "outputs": "class probabilities, float32 [N, K]", "start": "", "end": ".softmax(1)", "names": "CLASS_NAMES",
    "about": "Predict the class",
}) + """\
        best = sorted(zip(row.tolist(), CLASS_NAMES), reverse=True)[:3]
        print(path, *(f"{name} {probability:.1%}" for probability, name in best), sep="  ")
"""  # fmt: skip

PROBABILITIES_BY_HEAD = '''
def probabilities(logits: Tensor) -> Tensor:
    """Return probabilities of the classes, then of the values of each attribute. logits: float32 [N, K]."""
    sizes = [len(CLASS_NAMES), *map(len, ATTRIBUTES.values())]
    return torch.cat([part.softmax(1) for part in logits.split(sizes, 1)], 1)

'''
PROBABILITIES_OF_ATTRIBUTES = PROBABILITIES_BY_HEAD + fill_in(_PREDICT, {
    "outputs": "probabilities, float32 [N, K]", "start": "probabilities(", "end": ")",
    "names": "CLASS_NAMES + ATTRIBUTES", "about": "Predict class and attributes",
}) + """\
        known, texts = {"": CLASS_NAMES, **ATTRIBUTES}, []
        for (name, values), part in zip(known.items(), row.split([*map(len, known.values())])):
            texts.append(f"{name}{'=' * bool(name)}{values[part.argmax()]} {part.max():.1%}")
        print(path, *texts, sep="  ")
"""  # fmt: skip

NUMBERS = fill_in(_PREDICT, {
    "outputs": "the predicted numbers, float32 [N, T]", "start": "", "end": "", "names": "TARGET_NAMES",
    "about": "Predict the numbers",
}) + """\
        print(path, *(f"{name} {number:.6g}" for number, name in zip(row.tolist(), TARGET_NAMES)), sep="  ")
"""  # fmt: skip

DRAW_REST = '''
@torch.no_grad()
def draw_rest(
    network: nn.Module, cells: Tensor, given: Tensor, seed: int = 0, variety: float | Tensor = 0.5, rounds: int = 16
) -> Tensor:
    """Draw the missing cells of N sets; return all cells, uint8 [N, C, SIZE, SIZE, 4], on the CPU.

    cells: uint8 [N, C, SIZE, SIZE, 4], RGBA, in the order of CELL_NAMES; ignored where missing. given: bool [N, C],
    which cells are given; a set without any becomes a new character. Equal sets get different candidates.
    variety: 0 draws the most likely colours, 1 draws colours as often as they are likely; or float32 [N], one each.
    """
    most = network.palettes.shape[1] - 1
    for pixels in (own[has].reshape(-1, 4) for own, has in zip(cells, given)):
        found = len(pixels[pixels[:, 3] > 0].unique(dim=0))
        if found > most:
            raise ValueError(f"The given cells of a set have {found} colours; the model takes {most}.")
    device = network.palettes.device
    chances = torch.special.ndtr(normal_rows(len(cells), (rounds, 2, *cells.shape[1:4]), seed))  # uniform
    inputs = (tensor.to(device) for tensor in (cells, given, chances))
    return draw_missing(complete, network, *inputs, variety).cpu()
'''
DRAW_REST_MAIN = """
if __name__ == "__main__":
    about = f"Draw the missing cells of a character into a PNG file. Cells: {', '.join(CELL_NAMES)}"
    parser = argparse.ArgumentParser(description=about.replace("%", "%%"))
    parser.add_argument("--given", action="append", default=[], metavar="CELL=IMAGE")
    parser.add_argument("--count", type=int, default=1, help="candidates, a row each; first the most likely colours")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--variety", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", default="character.png")
    args = parser.parse_args()
    images, given = torch.zeros(len(CELL_NAMES), SIZE, SIZE, 4, dtype=torch.uint8), torch.zeros(len(CELL_NAMES)) > 0
    for name, path in (text.split("=", 1) for text in args.given):
        images[CELL_NAMES.index(name)], given[CELL_NAMES.index(name)] = read_image(path), True
    model, sets = load(device=args.device), (images.expand(args.count, -1, -1, -1, -1), given.expand(args.count, -1))
    variety = args.variety * (torch.arange(args.count) > 0)
    drawn = draw_rest(model, *sets, args.seed, variety, args.rounds)
    save_png(args.out, drawn.flatten(0, 1), columns=len(CELL_NAMES))
    print(f"Saved {args.count} characters of {len(CELL_NAMES)} cells in {args.out}")
"""
