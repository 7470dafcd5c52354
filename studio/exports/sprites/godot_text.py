"""Texts in Godot's resource files: quoted strings, and the note on the sprites' origin."""

from __future__ import annotations

import re
from collections.abc import Mapping

from studio.exports.provenance_note import format_note

_NOTE_KEY = "metadata/note = "
_NOTE = re.compile(rf'^{_NOTE_KEY}"((?:[^"\\\n]|\\.)*)"', re.MULTILINE)


def quoted(text: str) -> str:
    """Return a string literal of Godot. Control characters and lone surrogates are replaced."""
    plain = re.sub(r"[\x00-\x1f\x7f]", "_", text).encode("utf-8", "replace").decode()
    return '"{}"'.format(re.sub(r'(["\\])', r"\\\1", plain))


def note_lines(about: Mapping[str, object]) -> list[str]:
    """Return the metadata line of the resource, which stores `about` as a note; empty without `about`."""
    lines = format_note(about).split("\n") if about else []
    return [_NOTE_KEY + '"{}"'.format("\\n".join(quoted(line)[1:-1] for line in lines))] if lines else []


def read_note(data: bytes) -> str:
    """Return the note in the bytes of a resource file, possibly damaged; empty without a note."""
    found = _NOTE.search(data.decode("utf-8", "replace"))
    return re.sub(r"\\(.)", lambda pair: "\n" if pair[1] == "n" else pair[1], found[1]) if found else ""
