"""Fault 21: a disk that takes nothing, once or for good, at any write of all that the studio writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.campaigns import tell
from tests.campaigns.apart import in_own_process
from tests.campaigns.full_disks import WORKS, fill_up, fill_up_settings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.name == "nt", reason="Windows forks no process and has no limits of this kind"),
]


@pytest.mark.parametrize("name", WORKS)
def test_fault_21_every_write_fails(name: str, tmp_path: Path) -> None:
    tell(in_own_process(fill_up, name, tmp_path))


def test_fault_21_settings_of_the_window(tmp_path: Path) -> None:
    tell(in_own_process(fill_up_settings, tmp_path / "home"))
