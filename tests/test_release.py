"""What `make release` checks: each fault gives a sentence, the README's links get addresses, the notice is complete."""

from __future__ import annotations

import datetime
import io
import re
import tarfile
import zipfile
from pathlib import Path

import make_release
import pytest
import third_party
from make_release import ROOT, changelog_problems, file_address, with_absolute_links
from third_party import Package

TODAY = datetime.date(2026, 11, 28)
URL = "https://github.com/me/studio"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# Changes\n\n## Unreleased\n\nWords.\n\n## 1.2.0 - 2026-11-28\n\n- A\n", []),
        ("## Unreleased\n\n- A\n\n## 1.2.0 - 2026-11-28\n", ["move the entries"]),
        ("## Unreleased\n\n## 1.1.0 - 2026-11-01\n", ["not '## 1.2.0"]),
        ("## 1.2.0 - 2027-01-01\n", ["in the future"]),
        ("", ["not '## 1.2.0"]),
    ],
)
def test_the_change_log_is_ready(text: str, found: list[str]) -> None:
    problems = list(changelog_problems(text, "1.2.0", TODAY))
    assert len(problems) == len(found) and all(part in line for part, line in zip(found, problems, strict=True))


def test_links_of_the_readme_lead_into_the_repository() -> None:
    text = "![A page](assets/a.png) [Guide](assets/guide/x.md#part) [Web](https://a.b/c) [Here](#there)"
    assert with_absolute_links(text, URL, "v1") == (
        f"![A page]({URL}/raw/v1/assets/a.png) [Guide]({URL}/blob/v1/assets/guide/x.md#part) "
        "[Web](https://a.b/c) [Here](#there)"
    )
    assert (
        file_address("https://gitlab.com/me/x", "v1", "a.png", picture=True) == "https://gitlab.com/me/x/-/raw/v1/a.png"
    )
    assert file_address("https://codeberg.org/me/x", "v1", "a.md") == "https://codeberg.org/me/x/src/tag/v1/a.md"
    assert not list(make_release.link_problems(ROOT))


def test_the_project_gets_addresses() -> None:
    text = make_release.with_addresses((ROOT / "pyproject.toml").read_text(encoding="utf-8"), URL, "v1")
    assert f'[project.urls]\nSource = "{URL}"' in text and f'Issues = "{URL}/issues"' in text


def test_files_missing_from_the_archives_are_found(tmp_path: Path) -> None:
    for name in ("studio/a.py", "studio/b.py", "README.md"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(name)
    names = ["README.md", "studio/a.py", "studio/b.py"]
    files = {"x-1/README.md": b"README.md", "x-1/PKG-INFO": b"", "x-1/studio/a.py": b"other", "x-1/secret": b""}
    with tarfile.open(tmp_path / "x-1.tar.gz", "w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    found = list(make_release.archive_problems(tmp_path / "x-1.tar.gz", tmp_path / "tree", names))
    assert [line.partition(" ")[2] for line in found] == [
        "lacks studio/b.py.",
        "has secret, which git does not track.",
        "studio/a.py differs from the file in the repository.",
    ]
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr("studio/a.py", "studio/a.py")
        wheel.writestr("studio/cache.pyc", "")
    found = list(make_release.wheel_problems(tmp_path / "x.whl", tmp_path / "tree", names))
    assert found == ["x.whl lacks studio/b.py.", "x.whl: studio/cache.pyc is not the file in the repository."]


def test_unknown_licences_are_found() -> None:
    packages = [
        Package("good", "1", "BSD License; MIT License", "", (("LICENSE", "text"),)),
        Package("choice", "1", "LGPL-3.0-only OR GPL-3.0-only", "", (("LICENSE", "text"),)),
        Package("strict", "1", "MIT AND GPL-3.0-only", "", (("LICENSE", "text"),)),
        Package("silent", "1", "", "", ()),
    ]
    assert [line.partition(":")[0] for line in third_party.problems(packages)] == ["strict", "silent", "silent"]


def test_the_notice_has_every_package_and_text(tmp_path: Path) -> None:
    names = third_party.locked_names((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    assert {"torch", "pyside6-essentials", "numpy"} <= set(names) and len(names) == len(set(names))
    for name in ("LGPL-3", "GPL-3"):
        (tmp_path / name).write_text(f"{name} as Debian has it")
    packages = [third_party.read_package(name, tmp_path) for name in ("rich", "shiboken6", "pyside6-essentials")]
    assert not third_party.problems(packages)
    text = third_party.notice(packages, ROOT / "assets/starter/sources.json")
    assert "Will McGugan" in text and "Ninja Adventure" in text
    assert text.count("LGPL-3 as Debian has it") == 1 and "LGPL-3: the same text as LGPL-3 of shiboken6" in text


def test_the_guide_has_the_steps_left_to_a_person(tmp_path: Path) -> None:
    text = (ROOT / make_release.GUIDE).read_text(encoding="utf-8")
    written = re.search(r"for version (\S+) and (\S+)\.\n", text)
    assert written is not None
    copy = tmp_path / "release.md"
    copy.write_text(text, encoding="utf-8")
    make_release.write_steps(copy, written[1], written[2])
    assert copy.read_text(encoding="utf-8") == text
    make_release.write_steps(copy, "9.9.9", URL)
    assert "git tag -s v9.9.9" in copy.read_text(encoding="utf-8")
    assert make_release.version() in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
