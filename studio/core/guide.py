"""The user guide: one Markdown file per topic in assets/guide. index.md lists the topics in order.

`studio help` prints a topic; the window shows the guide and opens a page's topic with F1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from studio.core import paths
from studio.core.errors import UsageError

INDEX = "index"
MORE = "More: studio help "  # begins the last line of a failed command's output; the topic follows
_LINK = re.compile(r"\]\((?P<name>[\w-]+)\.md\)")
_HEADING = re.compile(r"^(?P<level>#{1,3}) +(?P<title>.+)$")


@dataclass(frozen=True)
class Section:
    """A heading in a topic with the text below the heading, without the text of lower headings."""

    title: str
    level: int  # 1 is the topic's title
    text: str  # Markdown

    @property
    def anchor(self) -> str:
        """The heading's anchor in GitHub's spelling: 'Out of memory' -> 'out-of-memory'."""
        return anchor_of(self.title)


@dataclass(frozen=True)
class Topic:
    """A topic in the guide. name: the file's name, and NAME in `studio help NAME`."""

    name: str
    sections: tuple[Section, ...]  # the topic's title first

    @property
    def title(self) -> str:
        return self.sections[0].title

    def matching(self, words: Sequence[str]) -> list[Section]:
        """Return the sections with all words. words: lower case."""
        return [section for section in self.sections if all(word in section.text.casefold() for word in words)]


def folder() -> Path:
    """Return the folder of the guide's Markdown files."""
    return paths.assets() / "guide"


def topic_names() -> list[str]:
    """Return the topics' names, in the index's order."""
    return list(dict.fromkeys(_LINK.findall(topic_text(INDEX))))


def topic_text(name: str) -> str:
    """Return a topic, or the index, as Markdown. Raises UsageError for an unknown name."""
    if name != INDEX and name not in topic_names():
        raise UsageError(f"The guide has no topic {name!r}.", "'studio help' lists all topics.")
    return (folder() / f"{name}.md").read_text(encoding="utf-8")


def section_text(link: str) -> str:
    """Return a topic ('train') or a section ('train#pause') as Markdown. Raises UsageError for other links."""
    name, _, anchor = link.partition("#")
    text = topic_text(name)
    if not anchor:
        return text
    found = [section.text for section in sections_of(text) if section.anchor == anchor]
    if not found:
        hint = f"'studio help {name}' prints the whole topic."
        raise UsageError(f"The topic {name!r} has no section {anchor!r}.", hint)
    return found[0]


def topics() -> list[Topic]:
    """Return the topics with their sections, in the index's order."""
    return [Topic(name, sections_of(topic_text(name))) for name in topic_names()]


def sections_of(text: str) -> tuple[Section, ...]:
    """Split a topic at the headings. '#' in a code block makes no heading."""
    found: list[tuple[str, int, list[str]]] = []
    in_code = False
    for line in text.splitlines():
        in_code ^= line.lstrip().startswith("```")
        heading = None if in_code else _HEADING.match(line)
        if heading:
            found.append((heading["title"].strip(), len(heading["level"]), []))
        if found:
            found[-1][2].append(line)
    return tuple(Section(title, level, "\n".join(lines)) for title, level, lines in found)


def anchor_of(title: str) -> str:
    """Return a heading's anchor in GitHub's spelling."""
    return re.sub(r"[^\w -]", "", title.casefold()).replace(" ", "-")
