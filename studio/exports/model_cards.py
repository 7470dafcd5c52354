"""A model's card: where it comes from and which files belong to it, as JSON and as a page to read.

A card shows whether something was changed since; who made it, it can't prove: anyone can write another card.
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
from studio.core.errors import BadInputError, DamagedError
from studio.core.formatting import count, number, percent
from studio.exports.html_page import html_page

FORMAT = 1
PROVENANCE = "Provenance"  # of the text that says what a picture comes from
LIMITS = "This shows whether something was changed. Who made it, it can't show."
JSON_ENDING, PAGE_ENDING = ".card.json", ".card.html"


@dataclass(frozen=True)
class ModelSource:
    """What something was made by: a model at a step of its training.

    run_sha256: of run.json, which holds the settings. weights_sha256: see `engine.provenance.digest_of`; empty where
    only the run is known. licence, credits: of the sprites that it learnt from, as the user entered them.
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
    started_from: tuple[Mapping[str, Any], ...] = ()  # as `ancestors` in run.json

    def checksums(self) -> dict[str, str]:
        """By what the run, its sprites and its weights are known, and the rights that were entered."""
        names = ("run_sha256", "weights_sha256", "data_fingerprint", "licence", "credits")
        return {name: str(getattr(self, name)) for name in names if getattr(self, name)}

    def to_json(self) -> str:
        """In one line; what is empty is left out."""
        return json.dumps({name: value for name, value in dataclasses.asdict(self).items() if value not in ("", ())})


def provenance_metadata(sources: Iterable[str]) -> dict[str, str]:
    """The text for a file of what comes from these, as JSON, each told once; none where nothing is known."""
    known = list(dict.fromkeys(filter(None, sources)))
    return {PROVENANCE: f"[{', '.join(known)}]"} if known else {}


def parse_provenance(text: str) -> list[ModelSource]:
    """What such a text tells. Raises ValueError."""
    return records.parse(text, list[ModelSource])


@dataclass(frozen=True)
class Copies:
    """The share of copies of training sprites among new sprites, measured at this step, and among other real ones."""

    step: records.Count
    share: float
    among_real: float


@dataclass(frozen=True)
class Card:
    """Of a model that was exported. files: SHA-256 of each by its name, the page of this card among them."""

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
        """The file of the card, whose last field is the SHA-256 of all others."""
        values = dataclasses.asdict(self)
        return (json.dumps({**values, "sha256": _seal_of(values)}, indent=2) + "\n").encode()


def card_paths(target: Path) -> tuple[Path, Path]:
    """Where the card of an exported file is: its JSON and its page."""
    return target.with_name(target.name + JSON_ENDING), target.with_name(target.name + PAGE_ENDING)


def read_card(path: Path) -> Card:
    """The card in a file. Raises DamagedError for one that was changed, BadInputError for a newer one, OSError."""
    data = path.read_bytes()
    try:
        values = records.parse(data, dict[str, Any])
        if isinstance(made := values.get("format"), int) and made > FORMAT:
            raise BadInputError(f"{path.name} was written by a newer version of the studio.", "Update the studio.")
        seal = values.pop("sha256", "")
        card = records.convert(values, Card)
        if wrong := [name for name in card.files if not _is_file_name(name)]:
            raise ValueError(f"{wrong[0]!r} is not the name of a file beside it")
    except ValueError as error:
        raise DamagedError(
            f"{path.name} is no card, or damaged.", f"{str(error)[:1].upper()}{str(error)[1:]}."
        ) from None
    if seal != _seal_of(values) or card.to_json() != data:
        raise DamagedError(f"{path.name} was changed.", "Its SHA-256 is not that of what it says.")
    return card


def _is_file_name(name: str) -> bool:
    """Return whether `name` is a file name without folders, for a file beside the card."""
    try:
        return bool(name) and b"\0" not in os.fsencode(name) and PurePath(name).name == name
    except UnicodeEncodeError:
        return False


def sha256_of(path: Path) -> str:
    """Of a file, in hex. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def disclosure(card: Card) -> str:
    """What may be said where a shop or a contest asks how pictures were made."""
    source = card.source
    rights = _rights(source.licence, source.credits)
    parents = [f"'{one['data_title']}'{_rights(str(one.get('licence', '')))}" for one in source.started_from]
    began = f"It had started from a model that learnt from {' and '.join(parents)}." if parents else (
        "It started from nothing: no other pictures are in it."
    )  # fmt: skip
    parts = [
        f"Sprites in this product were drawn by a small model for {card.size} x {card.size} pixels that was trained "
        f"with {source.made_by} on {card.device}.",
        f"It learnt from '{source.data}'{rights}: {count(source.data_count, 'sprite')}, with those that were held out.",
        began,
    ]
    if card.copies is not None:
        parts.append(
            f"When this was measured, {percent(card.copies.share)} of its new sprites were copies of sprites that it "
            f"learnt from; by the same measure {percent(card.copies.among_real)} of other real sprites are."
        )
    return " ".join(parts)


def card_page(card: Card) -> bytes:
    """The card as a page of HTML that needs nothing else."""
    source = card.source
    started = [
        f"{one['title']}, step {number(int(one['step']))}, which learnt from {one['data_title']}"
        f"{_rights(str(one.get('licence', '')))}"
        for one in source.started_from
    ]
    measured = "not measured" if card.copies is None else (
        f"{percent(card.copies.share)} at step {number(card.copies.step)}; among other real sprites "
        f"{percent(card.copies.among_real)}"
    )  # fmt: skip
    versions = [f"{name} {text}" for name, text in card.versions.items() if name != "studio"]
    rows = {
        "Model": f"{source.run}, step {number(source.step)}, recipe {source.recipe}",
        "Learnt from": f"{source.data}, {count(source.data_count, 'sprite')} of {card.size} x {card.size} pixels, "
        "with those that were held out",
        "Licence": source.licence or "not entered",
        "Credits": source.credits or "not entered",
        "Started from": "; ".join(started) or "nothing",
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
    settings = {name.replace("_", " "): str(value) for name, value in card.settings.items()}
    title = f"Card of {source.run}"
    body = _BODY.format(
        title=html.escape(title),
        about=_table(rows),
        disclosure=html.escape(disclosure(card)),
        settings=_table(settings),
        limits=html.escape(LIMITS),
        sums=_table(sums, code=True),
    )
    return html_page(title, body, _STYLE, width_rem=46).encode("utf-8", "replace")


def _seal_of(values: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _rights(*texts: str) -> str:
    """' (CC0 1.0, by the artists)', or nothing."""
    said = ", ".join(filter(None, texts))
    return f" ({said})" if said else ""


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
<h2>For a shop or a contest that asks</h2>
<blockquote>{disclosure}</blockquote>
<h2>Settings</h2>
<table>
{settings}
</table>
<h2>What belongs together (SHA-256)</h2>
<p>'studio verify FILE' says whether all is as it was. {limits}</p>
<table>
{sums}
</table>"""
