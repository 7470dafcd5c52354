"""Parse XML elements with their attributes; leave out text, and refuse entities."""

from __future__ import annotations

from xml.etree.ElementTree import Element, ParseError, TreeBuilder
from xml.parsers import expat

from studio.core.names import escape_unprintable
from studio.data.files.source_files import UnreadableFile

_MAX_ELEMENTS = 250_000  # an element takes about 300 bytes
_MAX_DEPTH = 100


class _Tree:
    """Builds the elements of an XML document; leaves out text and the elements named in `skipped`."""

    def __init__(self, name: str, skipped: str) -> None:
        self.builder = TreeBuilder()
        self._name, self._skipped = name, skipped
        self._depth = self._elements = 0
        self._skipping_from = _MAX_DEPTH + 1

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._elements > _MAX_ELEMENTS or self._depth > _MAX_DEPTH:
            raise UnreadableFile("refused", f"{self._name} has too many elements")
        if tag == self._skipped:
            self._skipping_from = min(self._skipping_from, self._depth)
        if self._depth < self._skipping_from:
            self.builder.start(tag, attributes)

    def end(self, tag: str) -> None:
        if self._depth < self._skipping_from:
            self.builder.end(tag)
        elif self._depth == self._skipping_from:
            self._skipping_from = _MAX_DEPTH + 1
        self._depth -= 1

    def doctype(self, name: str, system_id: str | None, public_id: str | None, has_subset: bool) -> None:
        """Refuse document types with declarations like entities. Old Tiled files have a document type without any."""
        if has_subset:
            raise UnreadableFile("refused", f"{self._name} declares XML entities or types, which are not read")


def parse_xml(data: bytes, name: str, *, skipped: str = "") -> Element:
    """Parse an XML document; return the root element. Never opens other files.

    name: the file's name, for messages. skipped: tag of elements to leave out, with all inner elements. Raises
    UnreadableFile for invalid XML, declarations of entities, and too many elements.
    """
    name = escape_unprintable(name)
    parser, tree = expat.ParserCreate(), _Tree(name, skipped)
    parser.StartElementHandler, parser.EndElementHandler = tree.start, tree.end
    parser.StartDoctypeDeclHandler = tree.doctype
    try:
        parser.Parse(data, True)
        return tree.builder.close()
    except (expat.ExpatError, ParseError, LookupError, ValueError, AssertionError):
        raise UnreadableFile("unreadable", f"{name} is not valid XML") from None
