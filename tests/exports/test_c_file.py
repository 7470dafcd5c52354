"""A model as a C file: what comes with it, what is refused, and what it is used with outside."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from studio.core.errors import ExportError
from studio.core.events import Exported
from studio.data.colour.pixel_art import PixelStyle, to_pixel_art
from studio.engine import catalog
from studio.engine.models.exporting import export, exportable_copy
from studio.engine.steps.batches import to_rgba
from studio.exports.c.completing import ROUNDS
from studio.exports.c.verification import CConfig
from studio.exports.c_file import CFile
from studio.recipes.flow import normal_rows
from tests.exports.c.tools import COMPILERS, STRICT, STYLE, needs_compiler
from tests.exports.tools import (
    read_back,
    small_exportable,
    small_model,
    small_model_with_attributes,
    thinned,
    with_most_slow,
)

RECIPES = ("generator", "classifier", "regression", "sets")
FORM = CFile()

pytestmark = [needs_compiler, pytest.mark.usefixtures("made_once")]


def exported(recipe: str, target: Path, weights: str = "fp32", style: PixelStyle | None = None) -> Exported:
    model = small_model(catalog.recipe(recipe))
    *_, done = export(replace(model, style=style or model.style), "c", target, CConfig(weights=weights))
    assert isinstance(done, Exported)
    return done


def run(words: list[str], folder: Path) -> str:
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "halt_on_error=1"}
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("recipe", with_most_slow(RECIPES))
def test_int8_is_smaller_and_says_by_how_much_it_differs(recipe: str, tmp_path: Path) -> None:
    exact, rounded = exported(recipe, tmp_path / "exact.c"), exported(recipe, tmp_path / "rounded.c", "int8")
    assert exact.difference < 3e-5 and 1e-4 < rounded.difference < 0.05
    sizes = [path.stat().st_size for path in (exact.paths[2], rounded.paths[2])]
    assert sizes[1] < 0.4 * sizes[0]


@pytest.mark.parametrize("recipe", with_most_slow(RECIPES))
def test_the_snippet_compiles_in_another_folder(recipe: str, tmp_path: Path) -> None:
    done = exported(recipe, tmp_path / f"my {recipe}.c")
    (tmp_path / "main.c").write_text(done.snippets["C"])
    said = run(["cc", *STRICT, "-O1", "main.c", done.paths[0].name, "-o", "main", "-lm"], tmp_path)
    said += run(["./main"], tmp_path)
    model = small_model(catalog.recipe(recipe))
    if recipe == "generator":
        header, _, pixels = (tmp_path / "sprite.pam").read_bytes().partition(b"ENDHDR\n")
        assert b"WIDTH 8\nHEIGHT 8\nDEPTH 4\n" in header
        with torch.no_grad():
            *_, x = model.recipe.draw(model.network, torch.tensor([0]), 1.5, 10, 1)
        expected = to_pixel_art(to_rgba(x).numpy(), np.array([0]), model.style)
        assert (np.frombuffer(pixels, np.uint8).reshape(expected.shape) == expected).all(-1).mean() >= 0.98
    elif recipe == "sets":
        header, _, pixels = (tmp_path / "set.pam").read_bytes().partition(b"ENDHDR\n")
        assert b"WIDTH 8\nHEIGHT 32\nDEPTH 4\n" in header
        nothing, given = torch.zeros(1, 4, 8, 8, 4, dtype=torch.uint8), torch.zeros(1, 4, dtype=torch.bool)
        chances = torch.special.ndtr(normal_rows(1, (ROUNDS, 2, 4, 8, 8), 1))
        drawn = exportable_copy(model).draw_missing(model.network, nothing, given, chances, 0.5).numpy()
        assert drawn.any() and (np.frombuffer(pixels, np.uint8).reshape(drawn.shape) == drawn).all(-1).mean() >= 0.98
    else:
        with torch.no_grad():
            expected = model.recipe.predict(model.network, torch.full((1, 4, 8, 8), -1.0))[0].numpy()  # is empty
        found = [float(line.rpartition(" ")[2]) for line in said.splitlines()]
        np.testing.assert_allclose(found, expected, rtol=1e-4)
        names = model.spec.class_names if recipe == "classifier" else model.spec.target_names
        assert [line.rpartition(" ")[0] for line in said.splitlines()] == list(names)


@pytest.mark.slow
def test_the_snippet_chooses_attributes_by_name(tmp_path: Path) -> None:
    model = small_model_with_attributes("generator")
    thinned(model.network)
    *_, done = export(model, "c", tmp_path / "made.c")
    assert isinstance(done, Exported)
    wrong = 'if (made_choose(context, "element", "stone") != -1 || made_choose(context, "y", "") != -1) return 9;\n'
    main = done.snippets["C"].replace('    made_choose(context, "x", "small");\n', f"    {wrong}")
    (tmp_path / "main.c").write_text(main)
    for compiler in COMPILERS:
        run([compiler, *STRICT, "-O1", "main.c", "made.c", "-o", "main", "-lm"], tmp_path)
    run(["./main"], tmp_path)
    _, _, pixels = (tmp_path / "sprite.pam").read_bytes().partition(b"ENDHDR\n")
    with torch.no_grad():
        *_, x = model.recipe.draw(model.network, torch.tensor([[0.0, 0, 0, 1, 0, 0]]), 1.5, 10, 1)  # of fire
    expected = to_pixel_art(to_rgba(x).numpy(), np.array([-1]), model.style)
    assert (np.frombuffer(pixels, np.uint8).reshape(expected.shape) == expected).all(-1).mean() >= 0.98


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert "Install a C compiler" in FORM.missing()
    with pytest.raises(ExportError, match="Can't export to"):
        exported("classifier", tmp_path / "model.c")
    assert list(tmp_path.iterdir()) == []


def test_file_names_with_quotes_are_errors(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="include"):
        exported("classifier", tmp_path / 'my "best".c')
    assert list(tmp_path.iterdir()) == []


_MORE_NAMES = [
    pytest.param(name, marks=pytest.mark.slow) for name in ("check.c", "aten.c", "model_2.c", "2026 trial.c")
]


@pytest.mark.parametrize("name", ["ünïcode 剣.c", "main.c", *_MORE_NAMES])
def test_any_name_of_a_file_will_do(name: str, tmp_path: Path) -> None:
    done = exported("classifier", tmp_path / name)
    assert done.paths[0].name == name and done.difference < 1e-5


@pytest.mark.slow
def test_the_smallest_sprites_are_drawn_and_a_single_pixel_is_refused(tmp_path: Path) -> None:
    recipe = catalog.recipe("generator")
    *_, done = export(small_model(recipe, 2), "c", tmp_path / "two.c")
    assert isinstance(done, Exported) and done.difference < 1e-5
    with pytest.raises(ExportError, match="single pixel"):
        list(export(small_model(recipe, 1), "c", tmp_path / "one.c"))
    assert not (tmp_path / "one.c").exists()


@pytest.mark.parametrize("suffix", [".h", ".bin"])
def test_a_damaged_companion_is_refused(suffix: str, tmp_path: Path) -> None:
    model = small_exportable("classifier")
    paths = FORM.write(model, tmp_path / "model.c", CConfig())
    damaged = paths[0].with_suffix(suffix)
    whole = damaged.read_bytes()
    damaged.write_bytes(whole.replace(b"SIZE", b"SIDE") if suffix == ".h" else whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(ExportError, match=r"can't be compiled|does not run with its weights"):
        read_back(FORM, paths, model, CConfig())
    damaged.unlink()
    with pytest.raises(ExportError, match="can't be read back"):
        read_back(FORM, paths, model, CConfig())


EVERYTHING = """
#include <stdio.h>
#include "model.h"

int main(void)
{
    static uint8_t rgba[MODEL_SIZE * MODEL_SIZE * 4];
    unsigned long sum = 0;
    model_context *context = model_open("model.bin");
    if (!context) return 1;
    for (int seed = 0; seed < 24; seed++) {
        if (model_draw(context, seed % (MODEL_CLASSES + 1) - 1, seed, 1.5f, 1 + seed / 4, rgba) != 0) return 1;
        for (size_t i = 0; i < sizeof rgba; i++) sum += rgba[i];
    }
    model_close(context);
    return printf("%lu\\n", sum) < 0;
}
"""


EVERY_SET = """
#include <stdio.h>
#include <stdlib.h>
#include "model.h"

int main(void)
{
    enum { BYTES = 4 * MODEL_SIZE * MODEL_SIZE };
    static uint8_t cells[MODEL_CELLS * BYTES], given[MODEL_CELLS];
    unsigned long sum = 0;
    model_context *context = model_open("model.bin");
    if (!context) return 1;
    for (int seed = 0; seed < 1 << MODEL_CELLS; seed++) {
        for (int cell = 0; cell < MODEL_CELLS; cell++) {
            given[cell] = seed >> cell & 1;
            for (int i = 0; i < BYTES; i++) {
                cells[cell * BYTES + i] = (uint8_t)(given[cell] ? i / 4 % (MODEL_COLOURS + 1) * 9 : i);
            }
        }
        if (model_complete(context, cells, given, seed, (float)(seed % 3) / 2, cells) != 0) return 1;
        for (size_t i = 0; i < sizeof cells; i++) sum += cells[i];
    }
    model_close(context);
    return printf("%lu\\n", sum) < 0;
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_every_compiler_takes_it_without_a_warning_and_sanitizers_find_nothing(
    recipe: str, precision: str, tmp_path: Path
) -> None:
    done = exported(recipe, tmp_path / "model.c", precision, STYLE)
    mains = {"generator": EVERYTHING, "sets": EVERY_SET}
    (tmp_path / "main.c").write_text(mains.get(recipe, done.snippets["C"]))
    sanitized = ("-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    assert COMPILERS
    for compiler in COMPILERS:
        for level in ("-O0", "-O2", "-O3"):
            run([compiler, *STRICT, level, "-c", "model.c", "-o", "model.o"], tmp_path)
        run([compiler, *STRICT, *sanitized, "main.c", "model.c", "-o", "main", "-lm"], tmp_path)
        assert run(["./main"], tmp_path)
    if shutil.which("g++"):  # the header serves C++ as well
        run(["g++", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-pedantic", "-x", "c++", "model.h"], tmp_path)
