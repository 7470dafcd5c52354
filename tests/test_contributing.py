"""CONTRIBUTING.md: its map of packages follows the docstrings, and the modules that it names exist.

python -m tests.test_contributing writes the map anew.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
_MAP = re.compile(r"(?<=test_contributing -->\n).*?(?=\n## )", re.DOTALL)


def package_map() -> str:
    """A table of all packages with the first paragraph of their docstrings."""
    rows = ["| package | does |", "|---|---|"]
    for path in sorted(ROOT.glob("studio/**/__init__.py")):
        words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        first = " ".join(words.split("\n\n")[0].split())
        rows.append(f"| `{path.parent.relative_to(ROOT).as_posix()}` | {first} |")
    return "\n".join(rows) + "\n"


def test_the_map_of_packages_follows_their_docstrings() -> None:
    assert _MAP.findall(PAGE.read_text(encoding="utf-8")) == [package_map()], "run: python -m tests.test_contributing"


def test_named_modules_exist() -> None:
    words = re.findall(r"`([\w./-]+\.(?:py|md|toml))`", PAGE.read_text(encoding="utf-8"))
    tests = ROOT / "tests"
    folders = (ROOT, ROOT / "studio", tests / "contract", tests / "plugin_package", *ROOT.glob("studio/**/"))
    assert len(words) > 40
    assert not [
        word for word in words if not any((folder / word).is_file() for folder in folders) and "NAME" not in word
    ]


if __name__ == "__main__":
    PAGE.write_text(_MAP.sub(lambda _: package_map(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
