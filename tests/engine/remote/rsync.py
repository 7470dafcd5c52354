"""In place of rsync, as far as the studio uses it: makes a folder like another one, by the filter rules."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

FAR = Path(os.environ["FAR"])


def main(words: list[str]) -> int:
    if words[-1] == "--version":
        print("rsync  version 3.1.3  protocol version 31")  # noqa: T201
        return 0
    if (FAR / "refuses").exists():
        sys.stderr.write("rsync: connection unexpectedly closed (0 bytes received so far) [sender]\n")
        sys.stderr.write("rsync error: error in rsync protocol data stream (code 12) at io.c(232) [sender=3.2.7]\n")
        return 12
    if (FAR / "full").exists():
        sys.stderr.write('rsync: [receiver] write failed on "/x": No space left on device (28)\n')
        sys.stderr.write("rsync error: error in file IO (code 11) at receiver.c(380) [receiver=3.2.7]\n")
        return 11
    source, target = map(place, words[-2:])
    rules = [word for word in words if word.startswith(("--include=", "--exclude="))]
    found = list(chosen(source, Path(), rules))
    if "--delete" in words:
        for path in chosen(target, Path(), rules):
            if path not in found and (target / path).exists():
                remove(target / path)
    for path in found:
        if (source / path).is_dir():
            (target / path).mkdir(exist_ok=True)
        elif stamp(source / path) != stamp(target / path):
            copy(source / path, target / path, in_place="--inplace" in words)
    return 0


def place(word: str) -> Path:
    if word.startswith("/"):
        return Path(word)
    host, _, folder = word.rpartition(":")
    with (FAR / "hosts").open("a") as hosts:
        hosts.write(f"{host}\n")
    return FAR / "home" / folder


def chosen(top: Path, folder: Path, rules: list[str]) -> Iterator[Path]:
    """What is inside as paths from `top` on, folders before what is in them."""
    for entry in sorted((top / folder).iterdir()):
        path = folder / entry.name
        if is_chosen(path, entry.is_dir(), rules):
            yield path
            if entry.is_dir():
                yield from chosen(top, path, rules)


def is_chosen(path: Path, is_folder: bool, rules: list[str]) -> bool:
    """The first rule that fits decides."""
    for rule in rules:
        kind, _, pattern = rule.partition("=")
        parts = pattern.strip("/").split("/")
        have = path.parts if pattern.startswith("/") else path.parts[-len(parts) :]
        fits = len(have) == len(parts) and all(map(fnmatchcase, have, parts))
        if fits and (is_folder or not pattern.endswith("/")):
            return kind == "--include"
    return True


def stamp(path: Path) -> tuple[int, int] | None:
    if not path.exists():
        return None
    return path.stat().st_size, path.stat().st_mtime_ns


def copy(source: Path, target: Path, *, in_place: bool) -> None:
    if in_place and target.exists():
        with target.open("r+b") as file:
            file.truncate(file.write(source.read_bytes()))
        return
    temporary = target.with_name(f".{target.name}.copied")
    with source.open(
        "rb"
    ) as file:  # another may take its place meanwhile: what is read and when it was written are of one
        temporary.write_bytes(file.read())
        about = os.fstat(file.fileno())
    os.utime(temporary, ns=(about.st_atime_ns, about.st_mtime_ns))
    temporary.replace(target)


def remove(path: Path) -> None:
    if path.is_dir():
        import shutil  # with all packers: a third of the time of a start

        shutil.rmtree(path)
    else:
        path.unlink()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
