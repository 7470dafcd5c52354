"""Findings of the system check: texts for a bug report, with the user's names and paths removed."""

from __future__ import annotations

import getpass
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from studio.core import paths
from studio.core.events import Event

State = Literal["good", "notice", "problem"]

TOPIC = "system-check"  # of the guide
_LABELS: Mapping[State, str] = {"good": "good", "notice": "notice", "problem": "PROBLEM"}
_INDENT = 4 * " "
_SYSTEM_FOLDERS = ("dev", "proc", "sys", "usr", "lib", "opt", "etc")
_POSIX_PATH = re.compile(r"(?<![\w~./…>-])/(?!(?:" + "|".join(_SYSTEM_FOLDERS) + r")/)(?:[^\s'\":,;()/]+/)+")
_WINDOWS_PATH = re.compile(r"(?:\b[A-Za-z]:|\\)\\(?:[^\\\s'\":,;()]+\\)+")


@dataclass(frozen=True)
class Finding(Event):
    """A result from the system check. check: the check's name, for programs."""

    check: str
    title: str
    state: State
    text: str
    advice: str = ""  # for the user, or ''
    prevents_training: bool = False
    changes_build: bool = False  # True if the remedy includes another PyTorch build

    def as_text(self) -> str:
        """Return the finding in one or two lines, for a terminal or a bug report."""
        line = f"{_LABELS[self.state]:8}{self.title}: {self.text}"
        return f"{line}\n{_INDENT}{_INDENT}-> {self.advice}" if self.advice else line


@dataclass(frozen=True)
class BuildChosen(Event):
    """The build of PyTorch that fits this computer, and the installed build, by uv's names. Empty: unknown."""

    suggested: str
    installed: str


@dataclass(frozen=True)
class CheckDone(Event):
    """The last event from the system check."""

    can_train: bool
    problems: int
    notices: int

    def as_text(self) -> str:
        """Return the result as a sentence."""
        if not self.can_train:
            return "Training can't work on this computer now."
        if not self.problems:
            return "Training works on this computer." if self.notices else "Everything is in order."
        return f"Training works, with {self.problems} {'problem' if self.problems == 1 else 'problems'}."


def summary(findings: Iterable[Finding]) -> CheckDone:
    """Count the findings, and say whether this computer can train."""
    found = list(findings)
    states = [finding.state for finding in found]
    can_train = not any(finding.prevents_training for finding in found)
    return CheckDone(can_train, states.count("problem"), states.count("notice"))


def report(findings: Iterable[Finding]) -> str:
    """Return the findings as text for a bug report."""
    return "\n".join(finding.as_text() for finding in findings) + "\n"


def anonymous(finding: Finding) -> Finding:
    """Return the finding without the user's names and paths."""
    secrets = _secrets()
    text, advice = (without_paths(words, secrets) for words in (finding.text, finding.advice))
    return replace(finding, text=text, advice=advice)


def without_paths(text: str, secrets: Mapping[str, str]) -> str:
    """Replace the user's folders in a text. secrets: replacements by folder. Other paths keep only their last part.

    System paths, for example /dev/kfd, stay.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        text = re.sub(re.escape(secret) + r"(?!\w)", secrets[secret].replace("\\", r"\\"), text)
    text = _POSIX_PATH.sub("…/", text)
    return _WINDOWS_PATH.sub(r"…\\", text)


def _secrets() -> dict[str, str]:
    """Return the user's folders and name with their replacements."""
    found = {str(path): "RUNS" for path in paths.runs_folders()}
    found |= {str(paths.home()): "STUDIO_HOME", sys.prefix: "ENVIRONMENT", str(Path.home()): "~"}
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user without a name
        name = ""
    found |= {f"{separator}{name}": f"{separator}USER" for separator in "/\\" if name}
    return {secret: word for secret, word in found.items() if len(secret) > 1}
