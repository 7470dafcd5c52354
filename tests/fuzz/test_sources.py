"""Thousands of damaged twins of every kind of input: sprites or a reason each, in little time and little memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from studio.data.colour.palette_files import palette_formats
from studio.data.importing import all_sources
from tests.fuzz.specimens import SPECIMENS
from tests.fuzz.trials import Trial, in_own_process, try_example, try_labels, try_palette, try_specimen

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.name == "nt", reason="Windows forks no process, and does not say the peak of memory"),
]

_CASES = 3000
_MOST_SECONDS = 5.0  # for one case
_MOST_GROWN = 300 << 20  # bytes: the frames of an animation may lawfully take 128 MB


def check(trial: Trial, cases: int = _CASES) -> None:
    print(trial)  # noqa: T201 - figures for whoever runs it with -s
    assert not trial.faults, "\n".join(trial.faults)
    assert trial.cases == cases and 0 < trial.read < cases
    assert trial.seconds < _MOST_SECONDS, f"case {trial.slowest} took {trial.seconds:.1f} s"
    assert trial.grown_bytes < _MOST_GROWN, f"{trial.grown_bytes >> 20} MB"


@pytest.mark.parametrize("kind", SPECIMENS)
def test_every_kind_of_input(kind: str, tmp_path: Path) -> None:
    check(in_own_process(try_specimen, kind, _CASES, tmp_path))


@pytest.mark.parametrize("source", [source.name for source in all_sources()])
def test_the_example_of_every_source(source: str, tmp_path: Path) -> None:
    check(in_own_process(try_example, source, _CASES, tmp_path))


@pytest.mark.parametrize("form", [form.name for form in palette_formats()])
def test_every_kind_of_palette(form: str, tmp_path: Path) -> None:
    check(in_own_process(try_palette, form, 2 * _CASES, tmp_path), 2 * _CASES)


def test_labels(tmp_path: Path) -> None:
    check(in_own_process(try_labels, _CASES, tmp_path))
