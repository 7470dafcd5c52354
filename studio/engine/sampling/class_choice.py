"""Parse the class names and class mixtures that users type."""

import csv
import math
from collections.abc import Mapping, Sequence

from studio.core.errors import UsageError
from studio.core.names import nfc

_MAX_LISTED = 30
_HINT = "Write classes with shares: 'sword:0.6,potion:0.4'. Put a class with a comma in double quotes."


def find_class(names: Sequence[str], wanted: str) -> int:
    """Return the index of the class named `wanted`. Raises UsageError for an unknown name.

    A class may be named by its last folder, 'sword' for 'items/sword', unless several classes share it.
    """
    if wanted in names:
        return names.index(wanted)
    name = nfc(wanted)
    known = [nfc(other) for other in names]  # run.json of older versions may hold decomposed names
    matches = [index for index, other in enumerate(known) if other == name]
    matches = matches or [index for index, other in enumerate(known) if other.rpartition("/")[2] == name]
    if not matches:
        raise UsageError(f"The model has no class {wanted!r}.", f"Its classes: {_list_classes(names)}.")
    if len(matches) > 1:
        title = f"{len(matches)} classes of the model are named {wanted!r}."
        raise UsageError(title, f"Give the full name: {_list_classes([names[index] for index in matches])}.")
    return matches[0]


def read_mixture(text: str) -> list[tuple[str, float]]:
    """Parse 'sword:0.6,potion:0.4' into (class, share) pairs; commas are quoted as in CSV. Raises UsageError."""
    try:
        parts = next(csv.reader([text], skipinitialspace=True))
    except csv.Error:
        raise UsageError("The mixture can't be read.", _HINT) from None
    pairs = []
    for part in parts:
        name, _, share = part.rpartition(":")
        try:
            value = float(share)
        except ValueError:
            value = math.nan
        if not name or not 0 <= value < math.inf:
            raise UsageError(f"Mixture: {part.strip()!r} is not a class with a share.", _HINT)
        pairs.append((name, value))
    return pairs


def mixture_text(shares: Mapping[str, float]) -> str:
    """Format a class mixture as text, the inverse of `read_mixture`: 'sword:0.6,potion:0.4'. shares: by class name."""
    return ",".join(f"{_quoted(name)}:{share:g}" for name, share in shares.items())


def _quoted(name: str) -> str:
    """Quote a class name for a mixture if it contains special characters."""
    is_plain = not any(mark in name for mark in ',"') and name == name.strip()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _list_classes(names: Sequence[str]) -> str:
    """Return the class names as text for an error message, shortened after _MAX_LISTED names."""
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
