"""Class settings: a teacher's TOML file that sets lessons, sprites and measuring time. Class files hold no code.

Example:

    title = "Class 10b"
    lessons = ["devices", "training-loop"]
    sprites = "sprites"
    seconds = 5
    hand_in = "pages"
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from studio.core import records
from studio.core.errors import BadInputError, UsageError, os_error_reason
from studio.lab.experiments.base import MOST_S
from studio.lab.learn import catalog
from studio.lab.lessons.base import Lesson

_LARGEST_BYTES = 64 << 10
_Text = Annotated[str, msgspec.Meta(max_length=1000)]
_Seconds = Annotated[float, msgspec.Meta(ge=1, le=MOST_S)]


@dataclass(frozen=True)
class ClassSettings:
    """A class's settings. Without a class file: every lesson, and sprites chosen by the learner."""

    title: str = ""
    names: tuple[str, ...] = ()  # lessons' names, in the class's order; empty for every lesson
    sprites: Path | None = None  # folder of sprites; None if the class chooses no sprites
    seconds: float | None = None  # measuring time; None for the lesson's default
    hand_in: Path | None = None  # folder for the learners' pages; None for pages on request only
    path: Path | None = None  # the class file; None without a class

    def lessons(self) -> list[tuple[int, Lesson]]:
        """Return the class's lessons, numbered from 1."""
        known = catalog.lessons()
        return list(enumerate((known[name] for name in self.names or known), 1))

    def lesson(self, name: str) -> Lesson:
        """Return the class's lesson by name or number. Raises UsageError for a lesson outside the class."""
        for number, lesson in self.lessons():
            if name in (lesson.name, str(number)):
                return lesson
        choices = ", ".join(f"{number} ({lesson.name})" for number, lesson in self.lessons())
        raise UsageError(f"There is no lesson {name!r}.", f"Choose one of: {choices}.")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The keys of a class file."""

    title: _Text = ""
    lessons: Annotated[tuple[_Text, ...], msgspec.Meta(max_length=100)] = ()
    sprites: _Text = ""
    seconds: _Seconds | None = None
    hand_in: _Text = ""


def read_class(path: Path | None) -> ClassSettings:
    """Read a class file, with folders relative to the file. path: None without a class.

    Raises BadInputError, UsageError.
    """
    if path is None:
        return ClassSettings()
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST_BYTES + 1)
        if len(text) > _LARGEST_BYTES:
            raise ValueError("the file is too large")
        found = records.convert(tomllib.loads(text.decode()), _File)
    except OSError as error:
        raise BadInputError(f"The class file {path} can't be read.", f"{os_error_reason(error)}.") from error
    except (ValueError, RecursionError) as error:
        hint = f"{str(error)[:1].upper()}{str(error)[1:]}."
        raise BadInputError(f"{path} is not a class file.", hint) from error
    names = tuple(dict.fromkeys(catalog.lesson(name).name for name in found.lessons))
    folder = path.resolve().parent
    sprites, hand_in = (folder / text if text else None for text in (found.sprites, found.hand_in))
    return ClassSettings(found.title, names, sprites, found.seconds, hand_in, path)
