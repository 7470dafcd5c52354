"""Model cards: the origin of an exported model and the SHA-256 of its files, in JSON and HTML.

A card reveals changes to the files. A card does not prove authorship: anyone can write a card.
"""

from __future__ import annotations

import dataclasses
import hashlib
import html
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from studio.core import records
from studio.core.config import value_text
from studio.core.errors import BadInputError, DamagedError
from studio.core.formatting import count, number, percent
from studio.exports.html_page import html_page

FORMAT = 1
PROVENANCE = "Provenance"  # key in saved sprites' metadata
LIMITS = "Shows changes, not authorship."
JSON_ENDING, PAGE_ENDING = ".card.json", ".card.html"


@dataclass(frozen=True)
class ModelSource:
    """A saved file's origin: the run and the training step of the model that made the file.

    run_sha256: of run.json, which holds the settings. weights_sha256: '' if only the run is known. licence, credits: as
    the user entered them for the training sprites.
    """

    made_by: str
    run: str
    recipe: str
    step: records.Count
    run_sha256: str
    data: str
    data_count: records.Count
    data_fingerprint: str
    weights_sha256: str = ""
    licence: str = ""
    credits: str = ""
    started_from: tuple[Mapping[str, Any], ...] = ()  # like `ancestors` in run.json

    def checksums(self) -> dict[str, str]:
        """Return the checksums of run, weights and training sprites, with licence and credits; omits empty values."""
        names = ("run_sha256", "weights_sha256", "data_fingerprint", "licence", "credits")
        return {name: str(getattr(self, name)) for name in names if getattr(self, name)}

    def to_json(self) -> str:
        """Return the fields as a line of JSON; omits empty fields."""
        return json.dumps({name: value for name, value in dataclasses.asdict(self).items() if value not in ("", ())})


def provenance_metadata(sources: Iterable[str]) -> dict[str, str]:
    """Return metadata naming the models of sprites. sources: a `ModelSource` as JSON per sprite, '' if unknown."""
    known = list(dict.fromkeys(filter(None, sources)))
    return {PROVENANCE: f"[{', '.join(known)}]"} if known else {}


def parse_provenance(text: str) -> list[ModelSource]:
    """Parse a JSON list of model sources from saved sprites' metadata. Raises ValueError."""
    return records.parse(text, list[ModelSource])


@dataclass(frozen=True)
class Copies:
    """A measurement of near copies of training sprites among generated sprites."""

    step: records.Count  # training step of the measurement
    share: float  # copies among generated sprites, 0 to 1
    among_real: float  # copies among real sprites outside the training set, 0 to 1, for comparison


@dataclass(frozen=True)
class Card:
    """The card of an exported model: its origin, settings and file checksums. files: SHA-256 by file name."""

    source: ModelSource
    created: str
    device: str
    size: int
    class_names: tuple[str, ...]
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    copies: Copies | None = None
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    format: int = FORMAT

    def to_json(self) -> bytes:
        """Return the card as a JSON file. The last field holds the SHA-256 over the other fields."""
        values = dataclasses.asdict(self)
        return (json.dumps({**values, "sha256": _checksum_of(values)}, indent=2) + "\n").encode()


def card_paths(target: Path) -> tuple[Path, Path]:
    """Return the card's paths for an exported file: JSON, then HTML."""
    return target.with_name(target.name + JSON_ENDING), target.with_name(target.name + PAGE_ENDING)


def read_card(path: Path) -> Card:
    """Read a card's JSON file. Raises DamagedError if it was changed, BadInputError for a newer version, OSError."""
    data = path.read_bytes()
    try:
        values = records.parse(data, dict[str, Any])
        if isinstance(made := values.get("format"), int) and made > FORMAT:
            raise BadInputError(f"{path.name} was written by a newer version of the studio.", "Update the studio.")
        checksum = values.pop("sha256", "")
        card = records.convert(values, Card)
        if wrong := [name for name in card.files if not _is_file_name(name)]:
            raise ValueError(f"{wrong[0]!r} is not the name of a file beside it")
    except ValueError as error:
        reason = f"{str(error)[:1].upper()}{str(error)[1:]}."
        raise DamagedError(f"{path.name} is not a card, or it is damaged.", reason) from None
    if checksum != _checksum_of(values) or card.to_json() != data:
        raise DamagedError(f"{path.name} was changed.", "The SHA-256 in it does not match its contents.")
    return card


def _is_file_name(name: str) -> bool:
    """Return whether `name` is a plain file name, without folders."""
    try:
        return bool(name) and b"\0" not in os.fsencode(name) and PurePath(name).name == name
    except UnicodeEncodeError:
        return False


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hex. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def disclosure(card: Card) -> str:
    """Return a statement on how the sprites were made, for shops and contests that ask for a disclosure."""
    source = card.source
    rights = _rights(source.licence, source.credits)
    parents = [f"'{model['data_title']}'{_rights(str(model.get('licence', '')))}" for model in source.started_from]
    start = f"Its training started from a model trained on {' and '.join(parents)}." if parents else (
        "The model was trained from scratch, without other images."
    )  # fmt: skip
    parts = [
        f"Sprites in this product were drawn by a small model for {card.size} x {card.size} pixels that was trained "
        f"with {source.made_by} on {card.device}.",
        f"The training data is '{source.data}'{rights}: {count(source.data_count, 'sprite')}, including the validation "
        "set.",
        start,
    ]
    if card.copies is not None:
        parts.append(
            f"In a measurement, {percent(card.copies.share)} of its new sprites were copies of training sprites; of "
            f"other real sprites, {percent(card.copies.among_real)} count as copies."
        )
    return " ".join(parts)


def card_page(card: Card) -> bytes:
    """Return the card as a self-contained HTML page."""
    source = card.source
    started = [
        f"{model['title']}, step {number(int(model['step']))}, trained on {model['data_title']}"
        f"{_rights(str(model.get('licence', '')))}"
        for model in source.started_from
    ]
    measured = "not measured" if card.copies is None else (
        f"{percent(card.copies.share)} at step {number(card.copies.step)}; among other real sprites "
        f"{percent(card.copies.among_real)}"
    )  # fmt: skip
    versions = [f"{name} {text}" for name, text in card.versions.items() if name != "studio"]
    rows = {
        "Model": f"{source.run}, step {number(source.step)}, recipe {source.recipe}",
        "Training data": f"{source.data}, {count(source.data_count, 'sprite')} of {card.size} x {card.size} pixels, "
        "including the validation set",
        "Licence": source.licence or "not entered",
        "Credits": source.credits or "not entered",
        "Initial weights": "; ".join(started) or "random",
        "Copies": measured,
        "Classes": ", ".join(card.class_names),
        "Trained": f"{card.created} on {card.device}",
        "Made by": ", ".join([source.made_by, *versions]),
    }
    sums = {
        "Weights": source.weights_sha256,
        "run.json": source.run_sha256,
        "Sprites (fingerprint)": source.data_fingerprint,
        **card.files,
    }
    settings = {name.replace("_", " "): value_text(value) for name, value in card.settings.items()}
    title = f"Card of {source.run}"
    texts = {"title": title, "disclosure": disclosure(card), "limits": LIMITS}
    tables = {"about": _table(rows), "settings": _table(settings), "sums": _table(sums, code=True)}
    body = _BODY.format(**{name: html.escape(text) for name, text in texts.items()}, **tables)
    return html_page(title, body, _STYLE, width_rem=46).encode("utf-8", "replace")


def _checksum_of(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _rights(*texts: str) -> str:
    """Return non-empty texts in brackets: ' (CC0 1.0, by the artists)'."""
    joined = ", ".join(filter(None, texts))
    return f" ({joined})" if joined else ""


def _table(rows: Mapping[str, str], *, code: bool = False) -> str:
    kind = "code" if code else "span"
    cells = ((html.escape(name), html.escape(text)) for name, text in rows.items())
    return "\n".join(f"<tr><th>{name}</th><td><{kind}>{text}</{kind}></td></tr>" for name, text in cells)


_STYLE = """\
th { width: 12rem; }
td { overflow-wrap: anywhere; }
blockquote { margin: 0; padding: .75rem 1rem; border-left: 4px solid #6a74e0; background: #8881; }
"""
_BODY = """\
<h1>{title}</h1>
<table>
{about}
</table>
<h2>Statement for shops and contests</h2>
<blockquote>{disclosure}</blockquote>
<h2>Settings</h2>
<table>
{settings}
</table>
<h2>Files and checksums (SHA-256)</h2>
<p>'studio verify FILE' compares the files with this card. {limits}</p>
<table>
{sums}
</table>"""
