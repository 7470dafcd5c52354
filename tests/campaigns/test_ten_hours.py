"""Ten hours of training, compressed: nothing grows but the curves, and nothing becomes slower."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.campaigns import tell
from tests.campaigns.apart import in_own_process
from tests.campaigns.ten_hours import train_for_ten_hours

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.name == "nt", reason="Windows forks no process and counts no open files"),
]


def test_a_training_of_ten_hours_takes_at_its_end_what_it_took_at_its_beginning(tmp_path: Path) -> None:
    tell(in_own_process(train_for_ten_hours, tmp_path))
