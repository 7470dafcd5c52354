"""Each operator in C beside PyTorch's own, all in one library."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from studio.core.errors import ExportError
from studio.exports.c import source
from studio.exports.c.program import Program
from studio.exports.c.tracing import trace
from tests.exports.c.tools import library, needs_compiler, pointer

pytestmark = pytest.mark.usefixtures("made_once")


class Of(nn.Module):
    """A module of a function."""

    def __init__(self, function: Callable[..., Tensor], *weights: Tensor) -> None:
        super().__init__()
        self.function = function
        self.weights = nn.ParameterList(weights)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs, *self.weights)


def weight(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


PICTURE, OTHER, ROWS = weight(1, 6, 5, 7), weight(1, 6, 1, 1), weight(3, 8)
ABOVE = ROWS.abs() + 0.1
PLACES = torch.randint(0, 5, PICTURE.shape, generator=torch.Generator().manual_seed(0))
CASES: dict[str, tuple[nn.Module, tuple[Tensor, ...]]] = {
    "add": (Of(torch.add), (PICTURE, OTHER)),
    "add turned": (Of(lambda a, b: b + a), (PICTURE, OTHER)),
    "sub": (Of(lambda a, b: 1 - a - b), (PICTURE, OTHER)),
    "mul of columns": (Of(lambda a: a * a[..., :1] * 3), (PICTURE,)),
    "div": (Of(lambda a, b: a / b / 6), (PICTURE, OTHER)),
    "maximum": (Of(torch.maximum), (PICTURE, OTHER)),
    "minimum": (Of(torch.minimum), (PICTURE, OTHER)),
    "outer sum": (Of(lambda a: a[:, :1] + a[:1] * 2), (ROWS,)),
    **{
        name: (Of(getattr(torch, name)), (ROWS,))
        for name in ("sigmoid", "tanh", "relu", "neg", "abs", "exp", "sin", "cos", "reciprocal", "erf")
    },
    **{name: (Of(getattr(torch, name)), (ABOVE,)) for name in ("log", "sqrt", "rsqrt")},
    "clamp": (Of(lambda a: a.clamp(-0.5, 0.5) + a.clamp(min=0.1) + a.clamp(max=0.2)), (ROWS,)),
    "silu": (Of(F.silu), (ROWS,)),
    "hardswish": (Of(lambda a: F.hardswish(4 * a)), (ROWS,)),
    "permuted": (Of(lambda a: a.permute(0, 3, 1, 2) * 2), (PICTURE,)),
    "sliced": (Of(lambda a: a[:, 1::2, 1:4].flatten(1) + 0.5), (PICTURE,)),
    "expanded": (Of(lambda a: a[:, :, None].expand(-1, -1, 2).reshape(3, 16)), (ROWS,)),
    "unshuffled": (Of(lambda a: F.pixel_unshuffle(F.pad(a, (0, 1, 0, 1), value=-1.0), 2)), (PICTURE,)),
    "shuffled": (Of(lambda a: F.pixel_shuffle(a[:, :4], 2)), (PICTURE,)),
    "cat": (Of(lambda a, b: torch.cat([a, b.expand_as(a), a[:, :2]], 1)), (PICTURE, OTHER)),
    "cat with nothing": (Of(lambda a: torch.cat([a, a.new_zeros(0)], 1)), (ROWS,)),
    "padded": (Of(lambda a: F.pad(a, (1, 2, 0, 3), value=0.5)), (PICTURE,)),
    "softmax": (Of(lambda a: a.softmax(1)), (ROWS,)),
    "softmax of channels": (Of(lambda a: a.softmax(1)), (PICTURE,)),
    "mean": (Of(lambda a: a.mean((2, 3))), (PICTURE,)),
    "mean kept": (Of(lambda a: a.mean(1, keepdim=True) + a.mean()), (PICTURE,)),
    "sum": (Of(lambda a: a.sum((0, 2)) + a.sum((1, 3)).sum()), (PICTURE,)),
    "linear": (nn.Linear(8, 5), (ROWS,)),
    "linear without bias": (nn.Linear(8, 5, bias=False), (ROWS,)),
    "products": (Of(lambda a: a[0] @ a[0].transpose(1, 2)), (PICTURE,)),
    "linear with a computed bias": (Of(lambda a, w: F.linear(a, w, a.sum(0)[:5]), weight(5, 8)), (ROWS,)),
    "product plus a matrix": (Of(lambda a, w: torch.addmm(a[:, :4], a, w), weight(8, 4)), (ROWS,)),
    "product plus a number": (Of(lambda a, w, b: torch.addmm(b, a, w), weight(8, 4), weight(1)), (ROWS,)),
    "product with weights": (Of(lambda a, w: a @ w, weight(8, 4)), (ROWS,)),
    "product with a weight": (Of(lambda a, w: a * w, weight(8)), (ROWS,)),
    "group norm": (nn.GroupNorm(2, 6), (PICTURE,)),
    "group norm alone": (nn.GroupNorm(3, 6, affine=False), (PICTURE,)),
    "upsample": (Of(lambda a: F.interpolate(a, scale_factor=2.0, mode="nearest")), (PICTURE,)),
    "upsample smoothly": (Of(lambda a: F.interpolate(a, scale_factor=2.0, mode="bilinear")), (PICTURE,)),
    "upsample more": (Of(lambda a: F.interpolate(a, size=(15, 14), mode="nearest")), (PICTURE,)),
    "average pool": (nn.AvgPool2d(2, ceil_mode=True), (PICTURE,)),
    "average pool of steps": (nn.AvgPool2d(3, 1), (PICTURE,)),
    "convolution": (nn.Conv2d(6, 16, 3, 1, 1), (PICTURE,)),
    "convolution of odd rows": (Of(lambda a, w: F.conv2d(a[:, :1], w, padding=1), weight(3, 1, 3, 3)), (PICTURE,)),
    "convolution by a picture": (Of(lambda a: F.conv2d(a, a[:, :, :3, :3])), (PICTURE,)),
    "convolution by odd rows": (Of(lambda a: F.conv2d(a[:, :1], a[:, :1, :3, 1:4], a[0, 0, 0, :1])), (PICTURE,)),
    "convolution in steps": (nn.Conv2d(6, 5, 3, 2, 1), (PICTURE,)),
    "convolution without border": (nn.Conv2d(6, 70, 3), (PICTURE,)),
    "convolution of a pixel": (nn.Conv2d(6, 4, 1, bias=False), (PICTURE,)),
    "convolution of a line": (nn.Conv2d(6, 4, (1, 3)), (PICTURE,)),
    "convolution with holes": (nn.Conv2d(6, 4, 3, padding=2, dilation=2), (PICTURE,)),
    "convolution with a border above and below": (nn.Conv2d(6, 4, (3, 1), 1, (1, 0)), (PICTURE,)),
    "convolution of images": (Of(lambda a, w: F.conv2d(a[0, :, None], w, padding=1), weight(5, 1, 3, 3)), (PICTURE,)),
    "group norm of images": (nn.Sequential(nn.Unflatten(1, (3, 2)), nn.Flatten(0, 1), nn.GroupNorm(2, 2)), (PICTURE,)),
    "upsampled images": (Of(lambda a: F.interpolate(a[0, :, None], scale_factor=2.0)), (PICTURE,)),
    "average pool of images": (Of(lambda a: F.avg_pool2d(a[0, :, None], 2)), (PICTURE,)),
    "flip": (Of(lambda a: a.flip(3) + 2 * a[:, :, 1:3].flip((1, 2)).sum()), (PICTURE,)),
    "log1p": (Of(lambda a: a.log1p()), (ABOVE,)),
    "gather": (Of(lambda a, i: a.gather(1, i)), (PICTURE, PLACES)),
    "gather by a broadcast index": (
        Of(lambda a, i: a.gather(2, i[:, :1, :, :1].expand(-1, 6, -1, 7))),
        (PICTURE, PLACES),
    ),
    "scatter_add": (Of(lambda a, i: torch.zeros(1, 6, 8, 7).scatter_add(2, i, a)), (PICTURE, PLACES)),
    "equal": (Of(lambda a, i: (i[:, None] == torch.arange(4)[:, None, None, None]).float() * a), (PICTURE, PLACES)),
}


class All(nn.Module):
    """Every case; what they give, one after the other in a row: tracing each on its own would take long."""

    def __init__(self) -> None:
        super().__init__()
        self.cases = nn.ModuleList([module for module, _ in CASES.values()])

    def forward(self, picture: Tensor, other: Tensor, rows: Tensor, above: Tensor, places: Tensor) -> Tensor:
        given = dict(zip(map(id, INPUTS), (picture, other, rows, above, places), strict=True))
        inputs = [[given[id(value)] for value in values] for _, values in CASES.values()]
        return torch.cat([case(*values).flatten() for case, values in zip(self.cases, inputs, strict=True)])


@pytest.fixture(scope="module")
def program(made_once: None) -> Program:
    return trace(All().eval().requires_grad_(False), INPUTS, NAMES)


@pytest.fixture(scope="module")
def found(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Tensor:
    """What the program gives in C."""
    text = source.network(program, [f"const float *{name}" for name in NAMES])
    export = "void computed(const float *w, float *m, const float **x, float *out);\n\n" + (
        "void computed(const float *w, float *m, const float **x, float *out)\n"
        "{\n    network(w, m, x[0], x[1], x[2], x[3], x[4], out);\n}\n"
    )
    path = tmp_path_factory.mktemp("operators") / "operators.c"
    path.write_text("\n".join([source.includes("header.h"), source.operators(program), text, export]))
    path.with_name("header.h").touch()
    offsets, count = program.weight_offsets()
    weights, memory = np.zeros(count, np.float32), np.full(program.memory_offsets()[1], np.nan, np.float32)
    for part, offset in offsets.items():
        weights[offset : offset + part.values.numel()] = part.values.numpy().ravel()
    out = torch.full((len(EXPECTED),), torch.nan)
    floats = [value.float().numpy() for value in INPUTS]
    inputs = (ctypes.c_void_p * len(INPUTS))(*(pointer(value).value for value in floats))
    library(path).computed(pointer(weights), pointer(memory), inputs, pointer(out.numpy()))
    return out


INPUTS, NAMES = (PICTURE, OTHER, ROWS, ABOVE, PLACES), ("picture", "other", "rows", "above", "places")
with torch.no_grad():
    SIZES = [module(*inputs).numel() for module, inputs in CASES.values()]
    EXPECTED = All()(*INPUTS)


@needs_compiler
@pytest.mark.parametrize("name", CASES)
def test_operators_equal_torch(found: Tensor, name: str) -> None:
    number = list(CASES).index(name)
    torch.testing.assert_close(found.split(SIZES)[number], EXPECTED.split(SIZES)[number], rtol=2e-6, atol=2e-6)


def test_every_operator_is_looked_at(program: Program) -> None:
    in_c = set(re.findall(r"aten_\w+", source.read("operators.c", "model")))
    elsewhere = {"aten_embedding"}  # takes whole numbers: the generator's tests look at it
    assert {call.function for call in program.calls} | elsewhere == in_c


def _slowly(*values: object) -> Any:
    """A case that differs little from the one before: to trace it takes a fifth of a second."""
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("module", "inputs", "reason"),
    [
        (Of(lambda a: a.cumsum(1)), (ROWS,), "aten.cumsum.default"),
        (nn.Conv2d(6, 6, 3, groups=2), (PICTURE,), "grouped, transposed or non-square convolutions"),
        _slowly(nn.ConvTranspose2d(6, 4, 2), (PICTURE,), "grouped, transposed or non-square convolutions"),
        (nn.AvgPool2d(2, padding=1), (PICTURE,), "pooling with padding"),
        (nn.GroupNorm(2, 8), (ROWS,), "a tensor with 2 axes"),
        (Of(lambda a: F.interpolate(a, size=(8, 9))), (PICTURE,), "not an integer"),
        _slowly(Of(lambda a: F.interpolate(a[..., :2, :2], scale_factor=2.2)), (PICTURE,), "not an integer"),
        (Of(lambda a: a * 2), (torch.arange(8),), "torch.int64"),
        (Of(lambda a: a.to(torch.int64).float()), (ROWS,), "to torch.int64"),
        _slowly(Of(lambda a: a.half().float()), (ROWS,), "to torch.float16"),
        (Of(lambda a: a.sum(1, dtype=torch.int64)), (ROWS,), "to torch.int64"),
        _slowly(Of(lambda a: a.mean(dtype=torch.float64)), (ROWS,), "to torch.float64"),
        (Of(lambda a: a * torch.tensor(1j)), (ROWS,), "torch.complex64"),
        (nn.AvgPool2d(2, divisor_override=3), (PICTURE,), "divisor_override"),
        (Of(lambda a, b: torch.addmm(b, a, a.T, alpha=2), weight(3)), (ROWS,), "addmm with factors"),
        (Of(lambda a: a + torch.randn(3, 8)), (ROWS,), "random numbers"),
        (Of(torch._neg_view), (ROWS,), "aten._neg_view"),
        (Of(lambda a: (a, a)), (ROWS,), "several outputs"),  # type: ignore[arg-type, return-value]
    ],
)
def test_unsupported_operators_are_errors(module: nn.Module, inputs: tuple[Tensor, ...], reason: str) -> None:
    with pytest.raises(ExportError, match=reason):
        trace(module.eval(), inputs, ["x"])


def test_untraceable_networks_are_errors() -> None:
    with pytest.raises(ExportError, match="traced") as refused:
        trace(Of(lambda a: a if a.sum() > 0 else -a), (ROWS,), ["x"])
    assert refused.value.hint
