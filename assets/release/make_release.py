"""Build the wheel and the source archive of a release, check all that a person publishes, upload nothing.

make release REPOSITORY=https://github.com/OWNER/NAME

Into dist/release: both archives with absolute links in the README, README.html as the package index shows it,
THIRD-PARTY.txt and SHA256SUMS. The steps left to a person are written into the guide's topic release.md.
"""

from __future__ import annotations

import argparse
import datetime
import email
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import third_party

ROOT = Path(__file__).resolve().parents[2]
GUIDE = Path("assets/guide/release.md")
_STEPS = "\n## Steps for a person\n"
_DISTRIBUTION = "sprite_training_studio"
_LARGEST = 100 * 10**6  # bytes per file: the package index's limit
_LINK = re.compile(
    r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<path>(?!https?:|mailto:|#)[^)\s#]+)(?P<anchor>#[^)\s]*)?\)"
)
_ADDRESS = re.compile(r"\b(?:href|src)=\"([^\"]*)\"")


def version() -> str:
    """Return the studio's version."""
    text = (ROOT / "studio/__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    return found[1] if found else ""


def file_address(repository: str, tag: str, path: str, *, picture: bool = False) -> str:
    """Return the address of a file's page in the repository, or of the picture for an <img>."""
    if "gitlab" in repository:
        return f"{repository}/-/{'raw' if picture else 'blob'}/{tag}/{path}"
    if any(name in repository for name in ("codeberg", "gitea", "forgejo")):
        return f"{repository}/{'raw' if picture else 'src'}/tag/{tag}/{path}"
    return f"{repository}/{'raw' if picture else 'blob'}/{tag}/{path}"


def with_absolute_links(text: str, repository: str, tag: str) -> str:
    """Return a Markdown text with links to files replaced by their addresses in the repository."""

    def replaced(found: re.Match[str]) -> str:
        address = file_address(repository, tag, found["path"], picture=bool(found["picture"]))
        return f"{found['picture']}[{found['text']}]({address}{found['anchor'] or ''})"

    return _LINK.sub(replaced, text)


def with_addresses(project: str, repository: str, tag: str) -> str:
    """Return pyproject.toml with the project's addresses."""
    issues = f"{repository}/-/issues" if "gitlab" in repository else f"{repository}/issues"
    table = f"""[project.urls]
Source = "{repository}"
Documentation = "{file_address(repository, tag, "assets/guide/index.md")}"
Changelog = "{file_address(repository, tag, "CHANGELOG.md")}"
Issues = "{issues}"
"""
    return project.replace("[project.optional-dependencies]", f"{table}\n[project.optional-dependencies]", 1)


def version_problems(number: str, today: datetime.date) -> Iterator[str]:
    """Yield a sentence for each fault of the version, the tags, the working tree and CHANGELOG.md."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", number):
        yield f"The version {number} is not of the form 1.2.3: correct studio/__init__.py."
    if (tagged := _git("rev-parse", "-q", "--verify", f"refs/tags/v{number}^{{commit}}")) and tagged != _git(
        "rev-parse", "HEAD"
    ):
        yield f"The tag v{number} names another commit: raise the version in studio/__init__.py."
    if changed := _git("status", "--porcelain"):
        yield f"Uncommitted changes: {', '.join(line[3:] for line in changed.splitlines()[:5])}."
    yield from changelog_problems((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), number, today)


def changelog_problems(text: str, number: str, today: datetime.date) -> Iterator[str]:
    """Yield a sentence for each fault of the change log."""
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    if any(re.search(r"^- ", section, re.MULTILINE) for section in sections if section.startswith("Unreleased")):
        yield f"CHANGELOG.md: move the entries from Unreleased to '## VERSION - DATE' (the version is {number})."
    numbered = [section.partition("\n")[0] for section in sections if not section.startswith("Unreleased")]
    found = re.fullmatch(rf"{re.escape(number)} - (\d{{4}}-\d\d-\d\d)", numbered[0] if numbered else "")
    if found is None:
        yield f"CHANGELOG.md: the newest section is not '## {number} - DATE'."
    elif datetime.date.fromisoformat(found[1]) > today:
        yield f"CHANGELOG.md: {found[1]} is in the future."


def copy_tree(tree: Path, repository: str, tag: str) -> list[str]:
    """Copy all files that git tracks, with the release's addresses in them. Returns the names."""
    names = _git("ls-files", "-z").rstrip("\0").split("\0")
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    for name, change in (("README.md", with_absolute_links), ("pyproject.toml", with_addresses)):
        text = (tree / name).read_text(encoding="utf-8")
        (tree / name).write_text(change(text, repository, tag), encoding="utf-8")
    return names


def link_problems(tree: Path) -> Iterator[str]:
    """Yield a sentence for each link of README.md without a file."""
    for found in _LINK.finditer((ROOT / "README.md").read_text(encoding="utf-8")):
        if not (tree / found["path"]).exists():
            yield f"README.md: {found['path']} does not exist."


def archive_problems(archive: Path, tree: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each missing, added or changed file of the source archive."""
    with tarfile.open(archive) as tar:
        inside = {member.name.partition("/")[2]: member for member in tar if member.isfile()}
        for name in sorted(set(names) - set(inside)):
            yield f"{archive.name} lacks {name}."
        for name in sorted(set(inside) - set(names) - {"PKG-INFO"}):
            yield f"{archive.name} has {name}, which git does not track."
        for name in sorted(set(inside) & set(names)):
            content = tar.extractfile(inside[name])
            if content is None or content.read() != (tree / name).read_bytes():
                yield f"{archive.name}: {name} differs from the file in the repository."


def wheel_problems(wheel: Path, tree: Path, names: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each module missing from the wheel, and each file missing from the repository."""
    with zipfile.ZipFile(wheel) as file:
        inside = {name for name in file.namelist() if name.startswith("studio/")}
        for name in sorted({name for name in names if name.startswith("studio/")} - inside):
            yield f"{wheel.name} lacks {name}."
        for name in sorted(inside):
            source = tree / name.replace("studio/assets/", "assets/", 1)
            if not source.is_file() or source.read_bytes() != file.read(name):
                yield f"{wheel.name}: {name} is not the file in the repository."


def metadata_problems(wheel: Path, number: str, repository: str) -> Iterator[str]:
    """Yield a sentence for each missing or wrong field of the wheel's metadata."""
    with zipfile.ZipFile(wheel) as file:
        name = next(name for name in file.namelist() if name.endswith(".dist-info/METADATA"))
        about = email.message_from_bytes(file.read(name))
    wanted = {"Version": number, "License-Expression": "MIT", "Description-Content-Type": "text/markdown"}
    for field, value in wanted.items():
        if about[field] != value:
            yield f"{wheel.name}: {field} is {about[field]}, not {value}."
    for field in ("Summary", "Keywords", "Classifier", "Requires-Python", "License-File"):
        if not about[field]:
            yield f"{wheel.name}: {field} is missing."
    if f"Source, {repository}" not in about.get_all("Project-URL", []):
        yield f"{wheel.name}: the address of the source is missing."


def start_problems(wheel: Path, number: str) -> Iterator[str]:
    """Yield a sentence if the studio in the wheel does not start."""
    with tempfile.TemporaryDirectory() as name:
        with zipfile.ZipFile(wheel) as file:
            file.extractall(name)
        variables = {**os.environ, "PYTHONPATH": name, "STUDIO_HOME": f"{name}/home"}
        for words in (["--version"], ["help", "release"]):
            command = [sys.executable, "-P", "-m", "studio", *words]
            done = subprocess.run(command, cwd=name, env=variables, capture_output=True, text=True, check=False)
            if done.returncode or (words == ["--version"] and number not in done.stdout):
                yield f"{wheel.name}: studio {' '.join(words)} fails: {(done.stderr or done.stdout).strip()[-200:]}"


def shown_problems(tree: Path, page: Path, tools: Path) -> Iterator[str]:
    """Render the README like the package index, and yield a sentence for each broken link."""
    command = [str(tools), "-m", "readme_renderer", str(tree / "README.md"), "-o", str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        yield f"README.md can't be shown: {done.stderr.strip()[-200:]}"
        return
    shown = page.read_text(encoding="utf-8")
    page.write_text(f'<!doctype html>\n<meta charset="utf-8">\n{shown}', encoding="utf-8")
    for address in _ADDRESS.findall(shown):
        if not address.startswith(("https://", "#")):
            yield f"README.md: the link {address} leads nowhere outside the repository."


def check_release(repository: str, out: Path, tools: Path) -> list[str]:
    """Build the release's files and return a sentence for each finding. tools: the Python that has twine."""
    number = version()
    tag = f"v{number}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    write_steps(ROOT / GUIDE, number, repository)
    found = list(version_problems(number, datetime.datetime.now(datetime.UTC).date()))
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name)
        names = copy_tree(tree, repository, tag)
        build = [str(Path(sys.executable).with_name("uv")), "build", "--no-build-isolation"]
        subprocess.run([*build, "--python", sys.executable, "--quiet", "--out-dir", str(out)], cwd=tree, check=True)
        (out / ".gitignore").unlink(missing_ok=True)
        archive, wheel = (next(out.glob(f"{_DISTRIBUTION}-{number}*{end}")) for end in (".tar.gz", ".whl"))
        found += [*link_problems(tree), *archive_problems(archive, tree, names), *wheel_problems(wheel, tree, names)]
        found += [*metadata_problems(wheel, number, repository), *start_problems(wheel, number)]
        found += shown_problems(tree, out / "README.html", tools)
    files = [archive, wheel]
    found += [
        f"{path.name} is too large: {path.stat().st_size} bytes." for path in files if path.stat().st_size > _LARGEST
    ]
    checked = [str(tools), "-m", "twine", "check", "--strict", *map(str, files)]
    done = subprocess.run(checked, capture_output=True, text=True, check=False)
    found += [f"twine check: {done.stdout.strip()}"] if done.returncode else []
    packages = third_party.read_packages(ROOT / "requirements.lock")
    found += third_party.problems(packages)
    text = third_party.notice(packages, ROOT / "assets/starter/sources.json")
    (out / "THIRD-PARTY.txt").write_text(text, encoding="utf-8")
    files += [out / "THIRD-PARTY.txt", *sorted(out.parent.glob(f"sprite-training-studio*{number}*"))]
    write_sums(out / "SHA256SUMS", files)
    return found


def write_sums(path: Path, files: Sequence[Path]) -> None:
    """Write the SHA-256 sums of files as sha256sum does."""
    lines = []
    for file in files:
        with file.open("rb") as content:
            lines.append(f"{hashlib.file_digest(content, 'sha256').hexdigest()}  {file.name}\n")
    path.write_text("".join(lines), encoding="utf-8")


def write_steps(topic: Path, number: str, repository: str) -> None:
    """Replace the last section of the guide's topic by the steps for this version and repository."""
    text = topic.read_text(encoding="utf-8").partition(_STEPS)[0]
    topic.write_text(text + _STEPS + steps(number, repository), encoding="utf-8")


def steps(number: str, repository: str) -> str:
    """Return the steps left to a person, as Markdown."""
    picture = file_address(repository, f"v{number}", "assets/screenshots/train-dark.png", picture=True)
    text = Path(__file__).with_name("steps.md").read_text(encoding="utf-8")
    for name, value in (("VERSION", number), ("REPOSITORY", repository), ("PICTURE", picture)):
        text = text.replace(name, value)
    return f"\n{text}"


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.rstrip("\n")


def main() -> int:
    """Check a release. Returns 1 after findings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("repository", help="https address of the repository, without a slash at the end")
    parser.add_argument("--tools", type=Path, default=ROOT / ".venv-release/bin/python", help="Python that has twine")
    options = parser.parse_args()
    repository = options.repository.rstrip("/").removesuffix(".git")
    if not re.fullmatch(r"https://[^/\s]+/\S+/\S+", repository):
        parser.error("give the repository as https://HOST/OWNER/NAME")
    out = ROOT / "dist" / "release"
    found = check_release(repository, out, options.tools)
    for path in sorted(out.iterdir()):
        sys.stdout.write(f"{path.relative_to(ROOT)}  {path.stat().st_size / 10**6:,.1f} MB\n")
    for sentence in found:
        sys.stdout.write(f"finding: {sentence}\n")
    sys.stdout.write(f"{len(found)} findings. Nothing was uploaded. The steps left to you: {GUIDE}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
