"""The note in a saved file: what made the sprites, and a seal that shows whether a byte was changed since.

PNG files have chunks for both (studio.exports.png); the other formats keep one text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from studio.core.errors import BadInputError
from studio.exports.cards import PROVENANCE, Source, sources_in

HEADING = "Sprite Training Studio"
_SEAL = "SHA-256"
_NO_SUM = "0" * 64  # in the place of the sum while the sum is computed
_SEALED = re.compile(rf"{_SEAL}: ([0-9a-f]{{64}})".encode())


def note_of(about: Mapping[str, object]) -> str:
    """Return the note of a file; with a seal where `about` tells what the sprites come from."""
    lines = [HEADING]
    if PROVENANCE in about:
        lines += [f"{_SEAL}: {_NO_SUM}", f"{PROVENANCE}: {about[PROVENANCE]}"]  # first: formats may cut a long note
    lines += [f"{key}: {value}" for key, value in about.items() if key != PROVENANCE]
    return "\n".join(lines)


def sealed(data: bytes) -> bytes:
    """Return a file with its SHA-256 in the note; a file whose note has no place for a seal stays as it is."""
    return data.replace(f"{_SEAL}: {_NO_SUM}".encode(), f"{_SEAL}: {hashlib.sha256(data).hexdigest()}".encode(), 1)


def is_whole(data: bytes) -> bool:
    """Return whether a file is as it was sealed."""
    found = _SEALED.search(data)
    if found is None:
        return False
    before = data[: found.start(1)] + _NO_SUM.encode() + data[found.end(1) :]
    return hashlib.sha256(before).hexdigest().encode() == found[1]


def provenance_in(note: str) -> str:
    """Return the text that `cards.provenance` wrote into a note; empty where the note has none."""
    start = f"{PROVENANCE}: "
    return next((line.removeprefix(start) for line in note.split("\n") if line.startswith(start)), "")


def sources_told(name: str, told: str) -> list[Source]:
    """Return the sources in the text of a file of that name. Raises BadInputError for an empty or damaged text."""
    if not told:
        hint = "Pictures tell it that were saved with its texts, and not by another program since."
        raise BadInputError(f"{name} does not say where it comes from.", hint)
    try:
        return sources_in(told)
    except ValueError as error:
        raise BadInputError(f"What {name} says of where it comes from is damaged.", f"{error}.") from error
