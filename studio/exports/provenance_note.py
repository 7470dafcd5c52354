"""Write and read the note in a saved file: the origin of the sprites, and a SHA-256 that reveals later changes.

PNG files store both in chunks (studio.exports.png); other formats store a single text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from studio.core.errors import BadInputError
from studio.exports.model_cards import PROVENANCE, ModelSource, parse_provenance

HEADING = "Sprite Training Studio"
_CHECKSUM = "SHA-256"
_PLACEHOLDER = "0" * 64  # placeholder while the checksum is computed
_CHECKSUM_LINE = re.compile(rf"{_CHECKSUM}: ([0-9a-f]{{64}})".encode())


def format_note(about: Mapping[str, object]) -> str:
    """Return metadata as the text of a note, with a blank checksum to fill in if `about` names the origin."""
    lines = [HEADING]
    if PROVENANCE in about:  # first, because formats may truncate a long note
        lines += [f"{_CHECKSUM}: {_PLACEHOLDER}", f"{PROVENANCE}: {about[PROVENANCE]}"]
    lines += [f"{key}: {value}" for key, value in about.items() if key != PROVENANCE]
    return "\n".join(lines)


def add_checksum(data: bytes) -> bytes:
    """Write the SHA-256 of a file's bytes into its note; return the bytes unchanged if the note has no room for it."""
    before, after = (f"{_CHECKSUM}: {text}".encode() for text in (_PLACEHOLDER, hashlib.sha256(data).hexdigest()))
    return data.replace(before, after, 1)


def checksum_matches(data: bytes) -> bool:
    """Return whether a file has a checksum in its note and the checksum is right."""
    found = _CHECKSUM_LINE.search(data)
    if found is None:
        return False
    before = data[: found.start(1)] + _PLACEHOLDER.encode() + data[found.end(1) :]
    return hashlib.sha256(before).hexdigest().encode() == found[1]


def provenance_in(note: str) -> str:
    """Return the JSON list of models in a note; empty if the note names none."""
    start = f"{PROVENANCE}: "
    return next((line.removeprefix(start) for line in note.split("\n") if line.startswith(start)), "")


def parse_sources(name: str, text: str) -> list[ModelSource]:
    """Parse the JSON list of models stored in the file `name`. Raises BadInputError if it is empty or damaged."""
    if not text:
        hint = "The studio saved it without details, or another program removed them."
        raise BadInputError(f"{name} does not say where it comes from.", hint)
    try:
        return parse_provenance(text)
    except ValueError as error:
        raise BadInputError(f"The origin stored in {name} is damaged.", f"{error}.") from error
