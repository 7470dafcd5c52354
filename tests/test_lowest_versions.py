"""The lowest versions in pyproject.toml work: the default tests pass with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_NEEDED_BYTES = 15 * 10**9  # the environment, and uv's copies of the packages
_TIMEOUT_S = 3 * 3600


@pytest.mark.slow
@pytest.mark.timeout(_TIMEOUT_S)
def test_the_default_tests_pass_with_the_lowest_versions() -> None:
    with tempfile.TemporaryDirectory() as folder:  # not tmp_path, which pytest keeps: gigabytes
        free = shutil.disk_usage(folder).free
        assert free >= _NEEDED_BYTES, f"This check needs 15 GB in {folder}; {free / 1e9:.0f} GB are free."
        python = Path(folder) / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        install = ["pip", "install", "--python", str(python)]
        _uv("venv", "--clear", "--python", sys.executable, folder)
        _uv(*install, "--resolution", "lowest-direct", "-r", "pyproject.toml", "--all-extras", "--group", "dev")
        _uv(*install, "--no-deps", "-e", ".")
        _uv(*install, "-r", "assets/installers/uv.lock")  # the tests of the installers run uv
        # Some tests of a failing package are slow: the first twenty failures name the package. The compiler needs more
        # than two minutes on a busy computer.
        words = ["-q", "-n", "0", "-p", "no:cacheprovider", "--maxfail", "20", "--timeout", "600"]
        tests = subprocess.run(
            [python, "-m", "pytest", *words], cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
        )
        assert tests.returncode == 0, tests.stdout[-4000:] + tests.stderr[-1000:]


def _uv(*words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "uv", *words], cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def _environment() -> dict[str, str]:
    """Return the environment without the variables of this environment and of these tests."""
    own = ("PYTEST", "VIRTUAL_ENV", "PYTHONPATH", "STUDIO_HOME", "COVERAGE")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}
