"""Run the system check: a child process per part, with a limit for the time without a message."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from studio.core import worker_process
from studio.core.events import Event, Events, JobFailed, Progress
from studio.core.worker_process import ChildProcess
from studio.engine.check.child import PartDone, part_function
from studio.engine.check.findings import Finding, anonymous, summary

_log = logging.getLogger(__name__)
_WORKING_SHARE = 0.01  # a silent process above this share of a core still works
_MOST_SILENCES = 5  # limit in a row, because a driver may also hang in an endless loop


class Part(NamedTuple):
    """A part of the check, run in a process. function: 'module:function'. silent_s: silence that means a stuck part."""

    title: str
    function: str
    silent_s: float
    stuck: str  # advice
    is_needed: bool = False  # for training


PARTS = (
    Part(
        "Computer", "studio.engine.check.computer_part:check_computer", 30.0,
        "A drive may not answer: reconnect network drives, or restart the computer.",
    ),
    Part(
        "Window", "studio.app.qt_check:check_qt", 30.0,
        "The display may not answer. Use the command line, or restart the computer.",
    ),
    Part(
        "PyTorch", "studio.engine.check.torch_part:check_torch", 180.0,
        "A driver may not answer: restart the computer, then update the driver of the graphics card.", is_needed=True,
    ),
)  # fmt: skip


def check_system() -> Events:
    """Check this computer. Yields Progress, Finding, BuildChosen, and CheckDone last. Closing ends all processes."""
    findings: list[Finding] = []
    for part in PARTS:
        for event in _events_of(part):
            if isinstance(event, Finding):
                found = anonymous(event)
                _log.info("%s", found.as_text())
                findings.append(found)
                yield found
            else:
                yield event
    yield summary(findings)


def _events_of(part: Part) -> Iterator[Event]:
    """Run a part in a child process, or in this process if no child can start. Yields its events."""
    if not worker_process.can_start():
        yield from part_function(part.function)()
        return
    try:
        process = ChildProcess("studio.engine.check.child", part.function)
    except OSError as error:
        yield _failure(part, f"The check can't start a process: {error.strerror or error}.", "Restart the computer.")
        return
    with closing(process):
        yield from _child_events(part, process)


def _child_events(part: Part, process: ChildProcess) -> Iterator[Event]:
    """Yield a child process's events, and a failure if the process hangs or dies. Repeats the last Progress meanwhile.

    A silent but computing process counts as slow, not as stuck: other programs may use the processor.
    """
    last, heard_s, used_s, silences = Progress(0, 0, part.title), time.monotonic(), process.cpu_s(), 0
    for message in process.messages():
        if isinstance(message, PartDone):
            return
        if message is None:
            if time.monotonic() - heard_s > part.silent_s:
                before_s, used_s, silences = used_s, process.cpu_s(), silences + 1
                if silences < _MOST_SILENCES and used_s - before_s > _WORKING_SHARE * part.silent_s:
                    heard_s = time.monotonic()
                    continue
                yield _failure(part, f"No answer for {part.silent_s:.0f} s, last about {last.what}.", part.stuck)
                return
            yield last
            continue
        heard_s, used_s, silences = time.monotonic(), process.cpu_s(), 0
        if isinstance(message, JobFailed):
            _log.error("%s", message.details)
            yield _failure(part, f"{message.title} {message.hint}".strip(), "Please report this with the log.")
        elif isinstance(message, Event):
            last = message if isinstance(message, Progress) else last
            yield message
    number = process.death_signal()
    how = f" with signal {number}" if number else ""
    yield _failure(part, f"The process ended unexpectedly{how}, last about {last.what}.", part.stuck)


def _failure(part: Part, text: str, advice: str) -> Finding:
    return Finding("part", part.title, "problem", text, advice, prevents_training=part.is_needed)
