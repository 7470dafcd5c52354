"""XML without entities: what is read, and what is refused."""

from __future__ import annotations

import pytest

from studio.data.atlases.xml_tree import parse_xml
from studio.data.files.source_files import UnreadableFile

LAUGHS = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;">]><a>&c;</a>'
ENTITY_OF_A_FILE = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'
DEFAULTS = '<!DOCTYPE a [<!ATTLIST b c CDATA "long">]><a><b/></a>'


def test_elements_and_attributes_without_text_and_skipped_elements() -> None:
    root = parse_xml(
        b'<!DOCTYPE a SYSTEM "http://nowhere/a.dtd"><a b="1">text<data><c/><data/></data><d/></a>', "x", skipped="data"
    )
    assert root.attrib == {"b": "1"} and [child.tag for child in root] == ["d"] and not root.text


@pytest.mark.parametrize("text", [LAUGHS, ENTITY_OF_A_FILE, DEFAULTS])
def test_declarations_are_refused(text: str) -> None:
    with pytest.raises(UnreadableFile, match=r"^s.xml declares XML entities or types"):
        parse_xml(text.encode(), "s.xml")


@pytest.mark.parametrize("text", ["", "<a>", "<a></b>", "<a/><b/>", "<a>&b;</a>", '<?xml encoding="none"?><a/>', "\0"])
def test_invalid_xml(text: str) -> None:
    with pytest.raises(UnreadableFile, match=r"^s\\x07.xml is not valid XML"):
        parse_xml(text.encode(), "s\x07.xml")


@pytest.mark.parametrize("text", ["<a>" * 101, f"<a>{'<b/>' * 250_000}</a>"])
def test_too_many_elements(text: str) -> None:
    with pytest.raises(UnreadableFile, match="too many elements"):
        parse_xml(text.encode(), "s.xml")
