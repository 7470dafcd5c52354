"""Write and read the note in a saved file: what made the sprites, and a seal (SHA-256) that reveals later changes.

PNG files have chunks for both (studio.exports.png); other formats hold a single text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from studio.core.errors import BadInputError
from studio.exports.model_cards import PROVENANCE, ModelSource, parse_provenance

HEADING = "Sprite Training Studio"
_SEAL = "SHA-256"
_NO_SUM = "0" * 64  # stands for the sum while the sum is computed
_SEALED = re.compile(rf"{_SEAL}: ([0-9a-f]{{64}})".encode())


def format_note(about: Mapping[str, object]) -> str:
    """Return the text of a note, with room for a seal if `about` has the sprites' provenance."""
    lines = [HEADING]
    if PROVENANCE in about:
        lines += [f"{_SEAL}: {_NO_SUM}", f"{PROVENANCE}: {about[PROVENANCE]}"]  # first: formats may cut a long note
    lines += [f"{key}: {value}" for key, value in about.items() if key != PROVENANCE]
    return "\n".join(lines)


def add_checksum(data: bytes) -> bytes:
    """Return a file's bytes with their SHA-256 in the note; unchanged if the note has no room for a seal."""
    return data.replace(f"{_SEAL}: {_NO_SUM}".encode(), f"{_SEAL}: {hashlib.sha256(data).hexdigest()}".encode(), 1)


def checksum_matches(data: bytes) -> bool:
    """Return whether a file has a seal and was not changed after sealing."""
    found = _SEALED.search(data)
    if found is None:
        return False
    before = data[: found.start(1)] + _NO_SUM.encode() + data[found.end(1) :]
    return hashlib.sha256(before).hexdigest().encode() == found[1]


def provenance_in(note: str) -> str:
    """Return the provenance in a note, in the form of `cards.provenance_metadata`; empty without provenance."""
    start = f"{PROVENANCE}: "
    return next((line.removeprefix(start) for line in note.split("\n") if line.startswith(start)), "")


def parse_sources(name: str, text: str) -> list[ModelSource]:
    """Parse the provenance of the file `name` into sources. Raises BadInputError for an empty or damaged text."""
    if not text:
        hint = "The studio saved it without a note, or another program removed the note."
        raise BadInputError(f"{name} does not say where it comes from.", hint)
    try:
        return parse_provenance(text)
    except ValueError as error:
        raise BadInputError(f"What {name} says of where it comes from is damaged.", f"{error}.") from error
