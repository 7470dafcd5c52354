"""The guide as data: topics, sections and anchors."""

from __future__ import annotations

import pytest

from studio.core import guide
from studio.core.errors import UsageError

_TEXT = """\
# Train

A model learns.

## Pause, then resume

```sh
# no heading
studio resume "my run"
```

## Out of memory
"""


def test_sections_begin_at_headings_outside_of_code() -> None:
    found = guide.sections_of(_TEXT)
    assert [(section.title, section.level) for section in found] == [
        ("Train", 1),
        ("Pause, then resume", 2),
        ("Out of memory", 2),
    ]
    assert "# no heading" in found[1].text and "learns" not in found[1].text


def test_anchors_are_spelled_as_on_github() -> None:
    assert guide.anchor_of("Pause, then resume") == "pause-then-resume"
    assert guide.anchor_of("The GPU isn't used") == "the-gpu-isnt-used"


def test_search_finds_sections_with_all_words() -> None:
    topic = guide.Topic("train", guide.sections_of(_TEXT))
    assert topic.title == "Train"
    assert [section.title for section in topic.matching(["resume", "pause"])] == ["Pause, then resume"]
    assert not topic.matching(["resume", "learns"])


def test_a_section_is_found_by_its_link() -> None:
    name = guide.topic_names()[0]
    section = guide.sections_of(guide.topic_text(name))[1]
    assert guide.section_text(name) == guide.topic_text(name)
    assert guide.section_text(f"{name}#{section.anchor}") == section.text
    for link, title in (("nothing", "The guide has no topic 'nothing'."), (f"{name}#nothing", "has no section")):
        with pytest.raises(UsageError, match=title):
            guide.section_text(link)
