"""Parse the class names, class mixtures and attributes that users type."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence

from studio.core.errors import UsageError
from studio.core.names import nfc

ANY_VALUE = "any"  # leaves an attribute open
_MAX_LISTED = 30
_ATTRIBUTE_HINT = "Write attributes with values: 'element=fire,kind=shield'."
_NAMES_HINT = "Write classes with commas: 'grass,water'. Put a class with a comma in double quotes."
_HINT = "Write classes with shares: 'sword:0.6,potion:0.4'. Put a class with a comma in double quotes."


def find_class(names: Sequence[str], wanted: str) -> int:
    """Return the index of the class named `wanted`. Raises UsageError for an unknown name.

    `wanted` may be the last folder alone, 'sword' for 'items/sword', unless several classes share the last folder.
    """
    if wanted in names:
        return names.index(wanted)
    name = nfc(wanted)
    known = [nfc(other) for other in names]  # older versions wrote decomposed names into run.json
    matches = [index for index, other in enumerate(known) if other == name]
    matches = matches or [index for index, other in enumerate(known) if other.rpartition("/")[2] == name]
    if not matches:
        raise UsageError(f"The model has no class {wanted!r}.", f"Its classes: {_list_names(names)}.")
    if len(matches) > 1:
        title = f"{len(matches)} classes of the model are named {wanted!r}."
        raise UsageError(title, f"Give the full name: {_list_names([names[index] for index in matches])}.")
    return matches[0]


def read_mixture(text: str) -> list[tuple[str, float]]:
    """Parse 'sword:0.6,potion:0.4' into (class, share) pairs; commas are quoted as in CSV. Raises UsageError."""
    pairs = []
    for part in _parts(text, "The mixture can't be read.", _HINT):
        name, _, share = part.rpartition(":")
        try:
            value = float(share)
        except ValueError:
            value = math.nan
        if not name or not 0 <= value < math.inf:
            raise UsageError(f"Mixture: {part.strip()!r} is not a class with a share.", _HINT)
        pairs.append((name, value))
    return pairs


def read_attributes(text: str, known: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Parse 'element=fire,kind=shield' into a value per attribute; commas are quoted as in CSV.

    known: the values of each attribute of a model. ANY_VALUE leaves an attribute open. Raises UsageError for unknown
    attributes and values, and for two values of an attribute.
    """
    found: dict[str, str] = {}
    for part in _parts(text, "The attributes can't be read.", _ATTRIBUTE_HINT):
        typed, equals, wanted = map(str.strip, part.partition("="))
        if not typed or not equals or not wanted:
            raise UsageError(f"{part.strip()!r} is not an attribute with a value.", _ATTRIBUTE_HINT)
        name, value = next((own for own in known if nfc(own) == nfc(typed)), None), nfc(wanted)
        if name is None:
            raise UsageError(f"The model has no attribute {typed!r}.", f"Its attributes: {_list_names([*known])}.")
        value = next((own for own in known[name] if nfc(own) == value), value)
        if value not in (*known[name], ANY_VALUE):
            hint = f"Its values: {_list_names(known[name])}, {ANY_VALUE}."
            raise UsageError(f"The model's attribute {name!r} has no value {wanted!r}.", hint)
        if found.setdefault(name, value) != value:
            raise UsageError(f"A sprite can't be both {name}={found[name]} and {name}={value}.", "Choose one of them.")
    return {name: value for name, value in found.items() if value in known[name]}


def attributes_text(values: Mapping[str, str]) -> str:
    """Format attributes as text, the inverse of `read_attributes`: 'element=fire,kind=shield'."""
    return ",".join(quoted(f"{name}={value}") for name, value in values.items())


def read_names(text: str) -> list[str]:
    """Parse 'grass,water' into class names; names with a comma are quoted as in CSV. Raises UsageError."""
    names = _parts(text, "The class names can't be read.", _NAMES_HINT)
    if any(not name.strip() for name in names):
        raise UsageError("A class name is empty.", _NAMES_HINT)
    return [name.strip() for name in names]


def names_text(names: Iterable[str]) -> str:
    """Format class names as text, the inverse of `read_names`: 'grass,water'."""
    return ",".join(map(quoted, names))


def mixture_text(shares: Mapping[str, float]) -> str:
    """Format a class mixture as text, the inverse of `read_mixture`: 'sword:0.6,potion:0.4'. shares: by class name."""
    return ",".join(f"{quoted(name)}:{share:g}" for name, share in shares.items())


def _parts(text: str, problem: str, hint: str) -> list[str]:
    """Split text at commas outside of double quotes. Raises UsageError with the problem and the hint."""
    try:
        return next(csv.reader([text], skipinitialspace=True))
    except csv.Error:
        raise UsageError(problem, hint) from None


def quoted(name: str) -> str:
    """Quote a name if it contains special characters."""
    is_plain = not any(mark in name for mark in ',"') and name == name.strip()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def _list_names(names: Sequence[str]) -> str:
    """Return names as text for an error message; after _MAX_LISTED names, only their number."""
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
