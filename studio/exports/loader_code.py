"""The fixed parts of a loader file. They need torch and the standard library, and nothing else.

The functions below are written out into loader files as they stand, which is why they look up names (CLASS_NAMES, SIZE,
to_rgba, ...) that the rest of such a file defines.
"""

from __future__ import annotations

LOAD = '''
def load(path: str | Path = WEIGHTS, device: str = "cpu") -> nn.Module:
    """The trained network. weights_only=True refuses anything but tensors."""
    weights = torch.load(path, map_location=device, weights_only=True)
    network = {network}(**ARCHITECTURE["arguments"]).to(device)
    network.load_state_dict(weights)
    return network.eval()
'''

SAMPLE = '''
@torch.no_grad()
def sample(
    network: nn.Module, count: int = 16, class_name: str = "", seed: int = 0, guidance: float = 1.5, steps: int = 10
) -> Tensor:
    """New sprites, uint8 [count, SIZE, SIZE, 4] on the CPU: of one class, or of all classes in turn."""
    labels = torch.arange(count) % len(CLASS_NAMES)
    if class_name:
        labels = torch.full((count,), CLASS_NAMES.index(class_name))
    for x in draw(network, labels.to(next(network.parameters()).device), guidance, steps, seed):
        pass  # the last are the sprites
    return to_rgba(x)


def save_png(path: str | Path, sprites: Tensor, columns: int = 8) -> None:
    """Write sprites, uint8 [N, S, S, 4], as one picture of `columns` columns."""
    count, size = sprites.shape[:2]
    rows = -(-count // columns)
    cells = torch.zeros(rows * columns, size, size, 4, dtype=torch.uint8)
    cells[:count] = sprites
    lines = cells.view(rows, columns, size, size, 4).transpose(1, 2).reshape(rows * size, columns * size * 4)
    pixels = zlib.compress(b"".join(b"\\0" + bytes(line.tolist()) for line in lines))
    header = struct.pack(">2I5B", columns * size, rows * size, 8, 6, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\\x89PNG\\r\\n\\x1a\\n")
        for kind, data in ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b"")):
            file.write(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Draw new sprites into a PNG file.")
    parser.add_argument("--class", dest="class_name", default="", choices=["", *CLASS_NAMES], metavar="NAME")
    parser.add_argument("--count", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guidance", type=float, default=1.5)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", default="sprites.png")
    args = parser.parse_args()
    model = load(device=args.device)
    save_png(args.out, sample(model, args.count, args.class_name, args.seed, args.guidance, args.steps))
    print(f"{args.count} sprites of {SIZE} x {SIZE} pixels are in {args.out}")
'''

READ_PICTURE = '''
def read_picture(path: str) -> Tensor:
    """A picture as a sprite, uint8 [SIZE, SIZE, 4]: centred and cut or padded. Reading pictures needs Pillow."""
    from PIL import Image

    with Image.open(path) as picture:
        rgba = picture.convert("RGBA")
    left, top = (rgba.width - SIZE) // 2, (rgba.height - SIZE) // 2
    data = bytearray(rgba.crop((left, top, left + SIZE, top + SIZE)).tobytes())
    return torch.frombuffer(data, dtype=torch.uint8).view(SIZE, SIZE, 4)

'''

_MAIN = """\
if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="{about} of sprites; without any, of one that is empty.")
    parser.add_argument("pictures", nargs="*")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    model = load(device=args.device)
    sprites = [read_picture(path) for path in args.pictures] or [torch.zeros(SIZE, SIZE, 4, dtype=torch.uint8)]
    for path, row in zip(args.pictures or ["(empty)"], predict(model, torch.stack(sprites))):
"""


def _main(about: str) -> str:
    """What reads the pictures of the command line; what is done with each `path` and its `row` goes on from there."""
    return _MAIN.replace("{about}", about)


PROBABILITIES = (
    '''
@torch.no_grad()
def look_at(network: nn.Module, x: Tensor) -> Tensor:
    """Class probabilities float32 [N, K] of sprites float32 [N, 4, SIZE, SIZE], premultiplied RGBA in [-1, 1]."""
    return network(x.to(next(network.parameters()).device)).float().softmax(1).cpu()


def predict(network: nn.Module, sprites: Tensor) -> Tensor:
    """Class probabilities float32 [N, K], in the order of CLASS_NAMES, of sprites uint8 [N, SIZE, SIZE, 4], RGBA."""
    return look_at(network, to_input(sprites.permute(0, 3, 1, 2)))


'''
    + _main("Name the class")
    + """\
        best = sorted(zip(row.tolist(), CLASS_NAMES), reverse=True)[:3]
        print(path, *(f"{name} {probability:.1%}" for probability, name in best), sep="  ")
"""
)

NUMBERS = (
    '''
@torch.no_grad()
def look_at(network: nn.Module, x: Tensor) -> Tensor:
    """Numbers float32 [N, T] of sprites float32 [N, 4, SIZE, SIZE], premultiplied RGBA in [-1, 1]."""
    return network(x.to(next(network.parameters()).device)).float().cpu()


def predict(network: nn.Module, sprites: Tensor) -> Tensor:
    """Numbers float32 [N, T], in the order of TARGET_NAMES, of sprites uint8 [N, SIZE, SIZE, 4], RGBA."""
    return look_at(network, to_input(sprites.permute(0, 3, 1, 2)))


'''
    + _main("Predict the numbers")
    + """\
        print(path, *(f"{name} {number:.6g}" for number, name in zip(row.tolist(), TARGET_NAMES)), sep="  ")
"""
)
