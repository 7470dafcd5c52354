"""Write the notice of third-party work: the art in the wheel, and the packages that an installation adds.

The packages are those of requirements.lock, and uv, which the installers carry. Their licences come from the running
environment. pip-licenses reads only one licence file of a package; PyTorch alone has dozens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.message import Message
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import cast

_ACCEPTED = re.compile(
    r"\b(MIT|0?BSD|Apache|ISC|Zlib|HPND|CC0|BSL-1\.0|PSF|Python Software Foundation|MPL|Mozilla|LGPL|NVIDIA)", re.I
)
_LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|authors)\b", re.IGNORECASE)
# Packages without files and without a licence: they only require others.
_EMPTY = {"cuda-toolkit"}
# Qt's wheels lack the texts of their licence. Debian keeps both.
COMMON_LICENCES = Path("/usr/share/common-licenses")
_FROM_SYSTEM = {"pyside6-essentials": ("LGPL-3", "GPL-3"), "shiboken6": ("LGPL-3", "GPL-3")}
_LINE = "=" * 100


@dataclass(frozen=True)
class Package:
    """An installed package. texts: contents of the licence files by file name."""

    name: str
    version: str
    licence: str
    url: str
    texts: tuple[tuple[str, str], ...]


def locked_names(lock: str) -> list[str]:
    """Return the sorted names of the packages in a lock file, without repetitions."""
    return sorted(set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)))


def read_package(name: str, system: Path = COMMON_LICENCES) -> Package:
    """Read a package's licence from its metadata and files. Raises PackageNotFoundError. system: Debian's licences."""
    found = metadata.distribution(name)
    about = _fields(found)
    classifiers = [line for line in about.get_all("Classifier", []) if line.startswith("License :: ")]
    named = [line.rpartition(" :: ")[2] for line in classifiers]
    # An old 'License' field may hold the whole text.
    field = (about.get("License") or "").strip().partition("\n")[0]
    licence = about.get("License-Expression") or "; ".join(named) or field
    files = [path for path in map(str, found.files or ()) if _is_licence(PurePosixPath(path))]
    files = [path for path in files if ".dist-info/" in path] or files
    paths = {path.rpartition(".dist-info/")[2]: Path(str(found.locate_file(path))) for path in files}
    if not paths:
        paths = {text: system / text for text in _FROM_SYSTEM.get(name, ()) if (system / text).is_file()}
    texts = tuple((path, paths[path].read_text(encoding="utf-8", errors="replace").strip()) for path in sorted(paths))
    return Package(name, found.version, licence, _homepage(about), texts)


def read_packages(lock: Path) -> list[Package]:
    """Read the licences of a lock file's packages and of uv."""
    return [read_package(name) for name in [*locked_names(lock.read_text(encoding="utf-8")), "uv"]]


def problems(packages: Iterable[Package]) -> list[str]:
    """Return a sentence for each package with an unknown licence, or without a licence text."""
    found = []
    for package in packages:
        if package.name in _EMPTY:
            continue
        if not all(_ACCEPTED.search(term) for term in re.split(r" AND |; ", package.licence)):
            found.append(f"{package.name}: read its licence ({package.licence or 'none named'}) before you publish")
        if not package.texts:
            found.append(f"{package.name}: no licence text found, in its files or in {COMMON_LICENCES}")
    return found


def notice(packages: Iterable[Package], sources: Path) -> str:
    """Return the notice: art in the wheel, a table of the packages, all licence texts. sources: sources.json."""
    packages = list(packages)
    width = max((len(package.name) for package in packages), default=0)
    rows = [f"{package.name:{width}}  {package.version:12}  {package.licence or '-'}" for package in packages]
    parts = [
        "Sprite Training Studio: third-party notice",
        "The studio itself is under the MIT licence. Its wheel carries no code of others. The starter models in the "
        "wheel were trained on art in the public domain (CC0 1.0):",
        "\n".join(_art(json.loads(sources.read_text(encoding="utf-8")))),
        "An installer carries uv and fetches the packages below from the package index; an offline bundle carries "
        "them. Versions and licences are those on the machine that made this notice (Linux). Qt (PySide6, shiboken6) "
        "is used under the LGPL 3.0, as separate libraries that you can replace. NVIDIA's libraries are under "
        "NVIDIA's own terms.",
        "\n".join(rows),
    ]
    seen: dict[str, str] = {}
    for package in packages:
        parts.append(f"{_LINE}\n{package.name} {package.version}\n{package.licence}\n{package.url}".rstrip())
        for path, text in package.texts:
            same = seen.setdefault(text, f"{path} of {package.name}")
            own = same == f"{path} of {package.name}"
            parts.append(f"--- {path}\n\n{text}" if own else f"--- {path}: the same text as {same}")
    return "\n\n".join(parts) + "\n"


def _is_licence(path: PurePosixPath) -> bool:
    named = _LICENCE_FILE.search(path.name) and path.suffix not in (".py", ".pyc", ".qml", ".so")
    return bool(named) or ".dist-info/licenses/" in str(path)


def _art(sources: Mapping[str, list[Mapping[str, str]]]) -> list[str]:
    """Return a line for each source of art, without the studio's own scripts."""
    entries = {entry["title"]: entry for group in sources.values() for entry in group if entry.get("url")}
    return [f"- {entry['title']}, by {entry['by']}: {entry['url']}" for entry in entries.values()]


def _fields(package: metadata.Distribution) -> Message:
    """Return a package's metadata, typed as a mapping: the type in Python 3.11 lacks `get`."""
    return cast("Message", package.metadata)


def _homepage(about: Message) -> str:
    links = dict(line.split(", ", 1) for line in about.get_all("Project-URL", []) if ", " in line)
    lowered = {label.lower(): url for label, url in links.items()}
    preferred = (lowered[label] for label in ("homepage", "home", "source", "repository") if label in lowered)
    return str(next(preferred, about.get("Home-page") or next(iter(lowered.values()), "")))
