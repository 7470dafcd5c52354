"""Reasons for files that can't be used, on Windows too."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.core.errors import ExportError, UnwritableError, os_error_reason
from studio.core.files import wrap_export_errors
from studio.core.formatting import describe_error
from studio.engine.runs.folder import wrap_write_errors


class WindowsOSError(OSError):
    """An OSError with Windows' error code, which Python has only there."""

    def __init__(self, code: int, text: str, name: str) -> None:
        super().__init__(2, text, name)
        self.winerror = code


@pytest.mark.parametrize("code", [3, 206])
def test_a_path_too_long_for_windows(code: int) -> None:
    path = Path("/Users/me") / ("x" * 200) / ("y" * 80)
    error = WindowsOSError(code, "The system cannot find the path specified", str(path))
    reason = "The path has 291 characters, too many for Windows: choose a folder with a shorter path"
    assert os_error_reason(error) == os_error_reason(error, path) == reason
    assert describe_error(error, otherwise="") == (f"Can't use {path}.", f"{reason}.")
    with pytest.raises(ExportError, match="too many for Windows"), wrap_export_errors(path):
        raise error
    with pytest.raises(UnwritableError) as caught, wrap_write_errors(path):
        raise error
    assert caught.value.reason == reason


def test_other_reasons_stay_the_system_s() -> None:
    short = WindowsOSError(3, "The system cannot find the path specified", "/Users/me/a")
    assert os_error_reason(short) == "The system cannot find the path specified"
    assert os_error_reason(OSError(2, "No such file or directory", "x" * 400)) == "No such file or directory"
    assert os_error_reason(OSError("odd")) == "odd"
