"""Where a program's buffers are, what its weights become, and the text that is made of it."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from studio.engine.models.exporting import exportable_copy
from studio.exports.c import source
from studio.exports.c.builder import Builder
from studio.exports.c.compose import COMMENT, prefix_of, step_of
from studio.exports.c.program import ALIGNMENT, Buffer, Program, StridedLoop, TensorView, contiguous
from studio.exports.c.verification import add_checksum, checksum_matches
from studio.exports.c.weights import MAGIC, checksum, int8_parts, pack, quantised
from tests.exports.c.tools import drawing_model


@pytest.fixture(scope="module")
def program(made_once: None) -> Program:
    return step_of(exportable_copy(drawing_model()))[0]


def test_live_buffers_do_not_overlap(program: Program) -> None:
    places, size = program.memory_offsets()
    lives = dict[Buffer, list[int]]()
    for number, call in enumerate(program.calls):
        for buffer in call.buffers():
            lives.setdefault(buffer, []).append(number)
    assert lives.keys() == places.keys() and all(place % ALIGNMENT == 0 for place in places.values())
    for one, other in itertools.combinations(places, 2):
        if lives[one][0] <= lives[other][-1] and lives[other][0] <= lives[one][-1]:
            assert places[one] + one.count <= places[other] or places[other] + other.count <= places[one]
    assert size < sum(buffer.count for buffer in places) / 5  # it is worth its while


def test_each_buffer_is_written_before_it_is_read(program: Program) -> None:
    written = set[Buffer]()
    scratch = {"aten_convolution"}  # its last two are room to work in
    for call in program.calls:
        out, *inputs = call.views()
        for view in inputs[:-2] if call.function in scratch else inputs:
            if isinstance(view.source, Buffer) and not view.source.name:
                assert view.source in written
        if isinstance(out.source, Buffer):
            written.add(out.source)


def test_axes_are_walked_as_one_where_they_can_be() -> None:
    def view(layout: torch.Tensor) -> TensorView:
        return TensorView(Buffer(layout.numel()), layout)

    whole, channels = contiguous((1, 6, 5, 7)), contiguous((1, 6, 1, 1))
    assert StridedLoop.over(view(whole), view(whole), view(whole)) == StridedLoop((210,), (1,), (1,), (1,))
    assert StridedLoop.over(view(whole), view(whole), view(channels)) == StridedLoop((6, 35), (35, 1), (35, 1), (1, 0))
    assert StridedLoop.over(view(contiguous(())), view(contiguous(())), view(contiguous(()))) == StridedLoop(
        (1,), (1,), (1,), (1,)
    )


def test_the_outermost_matrices_stay_exact(program: Program) -> None:
    matrices = {part for part in program.parts if part.is_matrix}
    exact = matrices - int8_parts(program, "int8")
    # of the time; of what enters; of the palette
    assert sorted(tuple(part.values.shape) for part in exact) == [(32, 4), (128, 64), (144, 16)]
    assert not int8_parts(program, "fp32")


def test_the_file_of_weights_holds_them_one_after_the_other(program: Program) -> None:
    fp32, int8 = pack(program, "fp32"), pack(program, "int8")
    assert fp32[:8] == MAGIC and checksum(fp32) != checksum(int8) and len(int8) < len(fp32) / 2
    numbers = np.frombuffer(fp32[12:], "<f4")
    assert np.array_equal(numbers, np.concatenate([part.values.numpy().ravel() for part in program.parts]))


def test_int8_is_as_near_as_half_a_step() -> None:
    matrix = torch.randn(50, 8, generator=torch.Generator().manual_seed(0)) * torch.logspace(-3, 3, 8)
    matrix[:, 2] = 0
    scales, numbers = quantised(matrix)
    assert numbers.dtype == torch.int8 and int(numbers.abs().max()) == 127
    assert bool(((matrix - numbers * scales).abs() <= 0.5001 * scales).all())


def test_only_called_operators_are_written() -> None:
    builder = Builder()
    row = builder.view(torch.zeros(1, 8))
    builder.call("aten_mean", builder.new((1,)), row, 1, 8)
    text = source.operators(builder.program)
    assert re.findall(r"^static \w+ (\w+)\(", text, re.MULTILINE) == ["sum_of", "aten_mean"]


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.0, "1.0f"), (0.1, "0.1f"), (1e-05, "1e-05f"), (-torch.inf, "-INFINITY"), (1 / 3, "0.33333334f")],
)
def test_number_literals_round_trip(value: float, written: str) -> None:
    assert source.number(value) == written
    if np.isfinite(value):
        assert np.float32(written.rstrip("f")) == np.float32(value)


def test_names_and_titles_end_no_string_and_no_comment() -> None:
    assert source.string('a "b" \\ ?? 剣') == '"a \\042b\\042 \\134 \\077\\077 \\345\\211\\243"'
    text = source.comment("*/ int main; /* \\ ??/ 剣 */")
    assert text.count("*/") == text.count("/*") == 1 and "\\" not in text and "??" not in text and text.isascii()


@pytest.mark.parametrize(
    ("name", "prefix"),
    [("sprites.c", "sprites"), ("my model 2.c", "my_model_2"), ("2026 trial.c", "model_2026_trial"), ("剣.c", "model")],
)
def test_a_prefix_is_a_name_of_c(name: str, prefix: str) -> None:
    assert prefix_of(Path(name)) == prefix


def test_a_seal_tells_every_change() -> None:
    text = add_checksum("int one;\n", *COMMENT)
    assert checksum_matches(text, *COMMENT)
    for place in range(len(text)):
        assert not checksum_matches(text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :], *COMMENT)
        assert not checksum_matches(text[:place], *COMMENT)
