"""Results of imports: the reasons for leaving files out, in a few words."""

from __future__ import annotations

from studio.data.files.source_files import ImportIssue
from studio.data.import_result import duplicate_reason, most_common_reasons


def test_duplicates_of_different_sprites_count_together() -> None:
    twins = [duplicate_reason(f"{name}.png", ("a", "b"), numbers_differ=False) for name in "xyz"]
    issues = [ImportIssue("copy.png", reason, "duplicate") for reason in twins]
    issues += [ImportIssue(f"{number}.png", "empty: the file has no bytes", "unreadable") for number in range(2)]
    assert most_common_reasons(issues) == "3 x duplicate; 2 x empty: the file has no bytes"
