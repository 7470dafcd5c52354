"""What the guide's topics promise: links, pictures, commands, settings and texts of the window exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.app.pages.generate.page import GeneratePage
from studio.app.pages.lab.page import LabPage
from studio.app.pages.runs.page import RunsPage
from studio.app.pages.sprites.page import SpritesPage
from studio.app.pages.train.page import TrainPage
from studio.cli.commands import COMMANDS
from studio.core import errors, guide, paths

_PAGES = (SpritesPage, TrainPage, GeneratePage, RunsPage, LabPage)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_UI_TEXT = re.compile(r"(?<![*\w])\*(?P<text>[^*\n]+)\*(?![*\w])")
_NUMBER = re.compile(r"\{[^}]*\}|\d+")  # also a part in braces of an f-string
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
TOPICS = [guide.INDEX, *guide.topic_names()]


def _links(text: str) -> Iterator[str]:
    return (found["target"] for found in _LINK.finditer(_CODE.sub("", text)))


def test_the_index_lists_every_file() -> None:
    assert sorted(TOPICS) == sorted(path.stem for path in guide.folder().glob("*.md"))


@pytest.mark.parametrize("name", TOPICS)
def test_links_and_pictures_of_a_topic_exist(name: str) -> None:
    for link in _links(guide.topic_text(name)):
        if link.startswith("https://"):
            continue
        path, _, anchor = link.partition("#")
        target = (guide.folder() / path).resolve() if path else guide.folder() / f"{name}.md"
        assert target.is_file(), link
        assert target.is_relative_to(paths.assets().resolve()), f"{link} is not in the wheel"
        if anchor:
            guide.section_text(f"{target.stem}#{anchor}")


@pytest.mark.parametrize("name", TOPICS)
def test_sections_of_a_topic_have_different_anchors(name: str) -> None:
    anchors = [section.anchor for section in guide.sections_of(guide.topic_text(name))]
    assert len(set(anchors)) == len(anchors)


@pytest.fixture(scope="module")
def window_texts() -> set[str]:
    """All quoted texts of the source, and its fields as labels: 'Batch size' is batch_size. Numbers are '0'."""
    folder = Path(errors.__file__).parents[1]
    source = "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    quoted = {_NUMBER.sub("0", text.removeprefix("&")) for text in re.findall(r'"([^"\n]+)"', source)}
    fields = re.findall(r"^    (\w+): ", source, re.MULTILINE)
    return quoted | {field.replace("_", " ").capitalize() for field in fields}


@pytest.mark.parametrize("name", TOPICS)
def test_words_in_italics_are_texts_of_the_window(name: str, window_texts: set[str]) -> None:
    texts = (found["text"] for found in _UI_TEXT.finditer(_CODE.sub("", guide.topic_text(name))))
    assert not [text for text in texts if _NUMBER.sub("0", text) not in window_texts]


def test_every_page_command_and_error_has_its_place_in_the_guide() -> None:
    classes, found = [errors.StudioError], []
    while classes:
        found.append(classes.pop())
        classes.extend(found[-1].__subclasses__())
    topics = [page.topic for page in _PAGES] + [command.topic for command in COMMANDS.values()]
    for link in [*topics, *(kind.topic for kind in found if kind.topic)]:
        guide.section_text(link)


def test_the_command_line_topic_names_every_command() -> None:
    text = guide.topic_text("command-line")
    assert not [name for name in COMMANDS if f"studio {name}" not in text]
