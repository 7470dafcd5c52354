"""Write the parts of a C file and its header: operators, network, tables and API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studio.exports.c.completing import SetTables
from studio.exports.c.program import (
    ALIGNMENT,
    Argument,
    Buffer,
    Call,
    Constant,
    Program,
    StridedLoop,
    TensorView,
    WeightTensor,
)  # fmt: skip
from studio.exports.c.weights import MAGIC, checksum, int8_parts
from studio.exports.source_code import fill_in

_SOURCES = Path(__file__).with_name("sources")
_INCLUDES = ("math.h", "stdio.h", "stdlib.h", "string.h")
_WIDTH = 110
# Names defined in operators.c: functions, functions made by a macro, macros, types, and the first constant of an enum.
_DEFINES = re.compile(
    r"^(?:static [^(]*?(\w+)\(|typedef void (\w+)\(|(?:BINARY|UNARY)\((\w+)|#define (\w+)|typedef struct .*\} (\w+);"
    r"|\} (\w+);|enum \{ (\w+))",
    re.MULTILINE,
)


@dataclass(frozen=True, eq=False)
class Style:
    """The C code's settings for snapping a drawn sprite to pixel art, by class. The last entry is for any class."""

    palette: NDArray[np.uint8]  # [K, 3]
    colours: tuple[int, ...]  # maximum colours of a sprite, per class
    alpha_levels: tuple[tuple[int, ...], ...]  # 1 to 254, per class

    @classmethod
    def of(cls, palette: NDArray[np.uint8], style: Mapping[str, Any]) -> Style:
        """Create the style from a palette and the contents of style.json."""
        colours = tuple(style["colours"])
        return cls(palette, (*colours, int(np.median(colours))), (*map(tuple, style["alpha_levels"]), ()))


def read(name: str, prefix: str, **values: str) -> str:
    """Read a C template. Replaces 'model_' by `prefix`, and each '@NAME@' by the value called NAME."""
    text = (_SOURCES / name).read_text(encoding="ascii")
    return fill_in(text.replace("model_", f"{prefix}_").replace("MODEL_", f"{prefix.upper()}_"), values, "@@")


def header(about: str, prefix: str, constants: Mapping[str, int], names: Mapping[str, Sequence[str]], api: str) -> str:
    """Return the text of a C header. about: top comment. names: string arrays to declare. api: function prototypes."""
    guard = f"{prefix.upper()}_H"
    lists = "".join(f"extern const char *const {prefix}_{name}[{len(texts)}];\n" for name, texts in names.items())
    return (
        f"{about}\n#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
        f'#ifdef __cplusplus\nextern "C" {{\n#endif\n\n{defines(constants, prefix)}\n{lists}\n'
        f"typedef struct {prefix}_context {prefix}_context;\n\n{api}\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n"
    )


def operators(program: Program) -> str:
    """Return the C source of the functions in operators.c used by a program, including dependencies."""
    heading, *pieces = (_SOURCES / "operators.c").read_text(encoding="ascii").rstrip("\n").split("\n\n")
    defined = [{name for groups in _DEFINES.findall(piece) for name in groups if name} for piece in pieces]
    wanted, needed = {call.function for call in program.calls}, set[int]()
    while more := {number for number, names in enumerate(defined) if names & wanted} - needed:
        needed |= more
        wanted |= {word for number in more for word in re.findall(r"\w+", pieces[number])}
    return "\n\n".join([heading, *(piece for number, piece in enumerate(pieces) if number in needed)]) + "\n"


def includes(header_name: str) -> str:
    return f'#include "{header_name}"\n\n' + "".join(f"#include <{name}>\n" for name in _INCLUDES)


def weight_table(program: Program, packed: bytes, precision: str) -> str:
    """Return C constants that describe the weights file, its tensors and the workspace size."""
    rounded = int8_parts(program, precision)
    rows = [_braced((*part.values.shape, int(part in rounded))) for part in program.parts]
    magic = ", ".join(str(byte) for byte in MAGIC)
    constants = {
        "WEIGHTS": program.weight_offsets()[1], "MEMORY": max(1, program.memory_offsets()[1]), "ALIGNMENT": ALIGNMENT,
        "WEIGHTS_BYTES": len(packed), "WEIGHTS_CRC": f"UINT32_C(0x{checksum(packed):08x})", "MAGIC": f"{{{magic}}}",
    }  # fmt: skip
    table = f"static const struct {{ int rows, columns, is_int8; }} parts[] = {{\n{_wrapped(rows)}}};\n"
    parts = defines({"PARTS": "(sizeof parts / sizeof *parts)"})
    return f"{defines(constants)}\n/* The tensors in the weights file, in order. */\n{table}{parts}"


def defines(values: Mapping[str, object], prefix: str = "") -> str:
    start = f"{prefix.upper()}_" if prefix else ""
    return "".join(f"#define {start}{name} {value}\n" for name, value in values.items())


def style_tables(style: Style) -> str:
    """Return C arrays with the palette, the maximum colour counts and the alpha levels."""
    colours = [_braced(colour) for colour in style.palette.tolist()] or ["{0, 0, 0}"]
    most = max(1, *map(len, style.alpha_levels))
    levels = [_braced((*row, *(0,) * (most - len(row)))) for row in style.alpha_levels]
    return (
        defines({"COLOURS": len(style.palette), "MOST_COLOURS": len(colours), "ALPHA_LEVELS": most})
        + f"\nstatic const uint8_t palette[{len(colours)}][3] = {{\n{_wrapped(colours)}}};\n"
        + "\n/* Per class, last any class: max. colours of a sprite; alpha levels from 1 to 254, padded with 0. */\n"
        + f"static const int colours_of[] = {{\n{_wrapped(map(str, style.colours))}}};\n"
        + f"static const int alpha_levels[][ALPHA_LEVELS] = {{\n{_wrapped(levels)}}};\n"
    )


def set_tables(tables: SetTables) -> str:
    """Return C arrays with the statistics of the training sets."""
    levels, shares = tables.palettes.reshape(-1).tolist(), map(number, tables.mirrored.tolist())
    return (
        defines({"PALETTES": len(tables.palettes)})
        + "\n/* Palettes of training sets, [PALETTES][ENTRIES][4]. */\n"
        + f"static const uint8_t palettes[] = {{\n{_wrapped(map(str, levels))}}};\n"
        + "\n/* Per cell: the cell that mirrors it, or -1; the share of training sets in which both are mirrored. */\n"
        + f"static const int partners[] = {{\n{_wrapped(map(str, tables.partners.tolist()))}}};\n"
        + f"static const float mirrored[] = {{\n{_wrapped(shares)}}};\n"
    )


def names_table(name: str, texts: Sequence[str]) -> str:
    return f"const char *const {name}[{len(texts)}] = {{\n{_wrapped(map(string, texts))}}};\n"


def string(text: str) -> str:
    """Return a text as a C string literal in UTF-8. Other than ASCII is octal: hex escapes have no fixed length."""
    data = text.encode("utf-8", "replace")
    plain = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in data)
    return f'"{"".join(plain)}"'


def drawing_call(prefix: str, attributes: Mapping[str, Sequence[str]]) -> str:
    """Return C example code that draws a sprite, with values for the attributes if the model has any."""
    chosen = ((string(name), string(values[0])) for name, values in attributes.items())
    lines = [f"{prefix}_choose(context, {name}, {value});" for name, value in chosen]
    label, what = ("-1", "any class") if lines else ("0", "class 0")
    lines.append(f"{prefix}_draw(context, {label}, 1, 1.5f, 10, rgba); /* {what}, seed 1, guidance 1.5, 10 steps */")
    return "".join(f"    {line}\n" for line in lines)


def comment(text: str) -> str:
    """Return a text as a C comment. Replaces characters that could end the comment."""
    plain = re.sub(r"[^ -~\n]|\\", "_", text).replace("*/", "*_").replace("/*", "/_").replace("??", "?_")
    return f"/* {plain} */\n"


def network(program: Program, inputs: Sequence[str], variants: Sequence[int] = ()) -> str:
    """Return a C function that runs a program. inputs: declarations of its parameters.

    variants: palette sizes of the program's variants; the function returns the smallest size for its parameter
    `entries`.
    """
    writer = _Writer(program.memory_offsets()[0], program.weight_offsets()[0])
    declared = ", ".join(["const float *w", "float *m", *inputs, "float *out"])
    text = "/* The traced network. w: weights, m: memory for intermediate results. */\n"
    for number, calls in enumerate(program.variants()):
        name = f"network_{variants[number]}" if variants else "network"
        lines = "".join(f"    {writer.call(call)}\n" for call in calls)
        text += f"static void {name}({declared})\n{{\n{lines}}}\n"
    if variants:
        passed = ", ".join(text.rpartition("*")[2] for text in ("*w", "*m", *inputs, "*out"))
        runs = (f"    if (entries <= {size}) {{ network_{size}({passed}); return {size}; }}\n" for size in variants)
        text += "\n/* Runs the network for a palette of so many entries; returns the entries of `out`. */\n"
        text += f"static int set_network({declared.replace('float *m,', 'float *m, int entries,')})\n{{\n"
        text += "".join(runs) + "    return 0;\n}\n"
    return text


@dataclass(frozen=True)
class _Writer:
    """Formats function calls as C statements. memory_offsets, weight_offsets: in floats."""

    memory_offsets: Mapping[Buffer, int]
    weight_offsets: Mapping[WeightTensor, int]

    def call(self, call: Call) -> str:
        return f"{call.function}({', '.join(map(self.argument, call.arguments))});"

    def argument(self, argument: Argument) -> str:
        if isinstance(argument, TensorView):
            return self._view(argument)
        if isinstance(argument, StridedLoop):
            axes = (argument.size, argument.out, argument.a, argument.b)
            return f"(grid){{{len(argument.size)}, {', '.join(map(_braced, axes))}}}"
        if isinstance(argument, tuple):
            return f"(convolution){_braced(argument)}"
        return number(argument) if isinstance(argument, float) else str(argument)

    def _view(self, view: TensorView) -> str:
        source, offset = view.source, int(view.layout.storage_offset())
        if isinstance(source, Constant):
            return f"(const float[]){{{number(source.value)}}}"
        if isinstance(source, WeightTensor):
            return f"w + {self.weight_offsets[source] + offset}"
        if source.name:
            return f"{source.name} + {offset}" if offset else source.name
        return f"m + {self.memory_offsets[source] + offset}"


def number(value: float) -> str:
    """Return a number as a C literal of type float."""
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    text = repr(float(np.float32(value))) if float(np.float32(value)) == value else str(np.float32(value))
    return f"{text}f"


def _braced(values: Iterable[int]) -> str:
    return f"{{{', '.join(map(str, values))}}}"


def _wrapped(items: Iterable[str]) -> str:
    """Join items with commas in lines of limited length."""
    lines = ["   "]
    for item in items:
        if len(lines[-1]) + len(item) + 2 > _WIDTH:
            lines.append("   ")
        lines[-1] += f" {item},"
    return "".join(f"{line}\n" for line in lines)
