"""Thousands of damaged twins of every kind of input: sprites or a reason each, in little time and little memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.fuzz.specimens import SPECIMENS
from tests.fuzz.trials import in_own_process, try_specimen

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(os.name == "nt", reason="Windows forks no process, and does not say the peak of memory"),
]

_CASES = 3000
_MOST_SECONDS = 5.0  # for one case
_MOST_GROWN = 300 << 20  # bytes: the frames of an animation may lawfully take 128 MB


@pytest.mark.parametrize("kind", SPECIMENS)
def test_every_kind_of_input(kind: str, tmp_path: Path) -> None:
    specimen = SPECIMENS[kind]()
    is_missed = sum(Path(name).suffix == Path(specimen.target).suffix for name in specimen.files) == 1
    trial = in_own_process(try_specimen, kind, _CASES, tmp_path)
    print(trial)  # noqa: T201 - figures for whoever runs it with -s
    assert not trial.faults, "\n".join(trial.faults)
    assert trial.cases == _CASES and 0 < trial.read <= _CASES - is_missed  # else a second one of its kind gives sprites
    assert trial.seconds < _MOST_SECONDS, f"case {trial.slowest} took {trial.seconds:.1f} s"
    assert trial.grown_bytes < _MOST_GROWN, f"{trial.grown_bytes >> 20} MB"
