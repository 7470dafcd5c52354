"""The child process of a learner's code: runs the code, sends its output, and checks an exercise."""

import contextlib
import io
import os
import tempfile
import time
import traceback
from dataclasses import dataclass
from typing import Any, BinaryIO

from studio.core.events import Event
from studio.core.process import prepare_for_training
from studio.core.worker_process import exit_with_parent, own_streams, receive, send
from studio.lab.lessons.base import Lesson

_FILE = "<your code>"
_MOST_CHARACTERS = 20_000  # limit of the printed text


@dataclass(frozen=True)
class CodeStarted(Event):
    """The code runs now, or if not `is_running`, its process still loads PyTorch."""

    is_running: bool = True


@dataclass(frozen=True)
class CodePrinted(Event):
    """Text that the code has printed."""

    text: str


@dataclass(frozen=True)
class CodeDone(Event):
    """The end of the code. error: an exception, the time limit, or ''. problem: the exercise check's finding, or ''."""

    error: str = ""
    problem: str = ""
    took_s: float = 0.0
    is_checked: bool = False  # whether the code was checked as a solution of an exercise

    @property
    def passed(self) -> bool:
        """Whether the code solves the exercise."""
        return self.is_checked and not self.error and not self.problem


def main() -> None:
    """Receive code from the parent process, run it, and send events, at last CodeDone."""
    prepare_for_training()
    requests, answers = own_streams()
    try:
        code, lesson = receive(requests)
        exit_with_parent(requests)
        import torch  # before the clock starts

        if "optim" in code:
            import torch._dynamo  # noqa: F401 - torch.optim imports its compiler late, which takes seconds

        os.chdir(tempfile.gettempdir())  # the parent deletes this process's temporary folder
        send(answers, CodeStarted())
        send(answers, run(code, lesson, _Output(answers)))
    finally:
        os._exit(0)  # at once: the code may have left threads behind


def run(code: str, lesson: Lesson | None, output: io.TextIOBase) -> CodeDone:
    """Run code and return its end. lesson: checks the code as a solution of the exercise."""
    start_s, names = time.perf_counter(), {"__name__": "__main__"}
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        error = _error_of(code, names)
    took_s = time.perf_counter() - start_s
    if error or lesson is None:
        return CodeDone(error, took_s=took_s)
    with contextlib.redirect_stdout(io.StringIO()):
        return CodeDone(problem=_problem_of(lesson, names, code), took_s=took_s, is_checked=True)


def _error_of(code: str, names: dict[str, Any]) -> str:
    """Execute code; return the description of an exception, or ''."""
    try:
        exec(compile(code, _FILE, "exec"), names)  # the learner's own code
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - told to the learner
        return _describe(error, code)
    return ""


def _describe(error: BaseException, code: str) -> str:
    r"""Return an error with its line of the code: "Line 3: x = y\nNameError: name 'y' is not defined"."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == _FILE]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == _FILE else lines[-1] if lines else None
    texts = code.split("\n")
    place = f"Line {line}: {texts[line - 1].strip()}\n" if line and line <= len(texts) else ""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{place}{type(error).__name__}: {said}".rstrip(": ")[:2000]


def _problem_of(lesson: Lesson, names: dict[str, Any], code: str) -> str:
    """Return a sentence about the error in a solution; '' for a right solution."""
    try:
        return lesson.exercise.check(names)
    except KeyError as error:
        return f"The program does not define {error.args[0]!r}."
    except Exception as error:  # noqa: BLE001 - the check calls functions of the learner
        return f"The check stopped with an error. {_describe(error, code)}"


class _Output(io.TextIOBase):
    """A text stream: sends each text as CodePrinted, up to 20,000 characters."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers, self._left = answers, _MOST_CHARACTERS

    def write(self, text: str) -> int:
        if self._left >= 0:
            self._left -= len(text)
            shown = text if self._left >= 0 else f"{text[: self._left]}\n(more output is not shown)\n"
            send(self._answers, CodePrinted(shown))
        return len(text)
