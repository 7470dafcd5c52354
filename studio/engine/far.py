"""A folder on another machine: commands run there by ssh, files go there and come back by rsync. No torch here.

Nothing is asked on the way (BatchMode), and a link that is dead is given up after some seconds. All calls of a Link
share one connection. The machine there needs a POSIX shell, rsync and the studio.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from studio.core.errors import RunError, UnwritableError, UsageError
from studio.core.shell import command
from studio.core.versions import versions_in, versions_line

_SSH = (
    "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5",
    "-o", "ServerAliveCountMax=3", "-o", "ControlMaster=auto", "-o", "ControlPersist=60",
)  # fmt: skip
_REFUSED = 255  # ssh's exit code when it has not got through
_CUT = (_REFUSED, 10, 12, 30, 35)  # rsync's when the link is lost: sockets, the data stream, timeouts
_FINE = (0, 24)  # 24: a file vanished while it was sent; the next time tells
_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_NO_STUDIO, _NO_RSYNC = 3, 4
FIND_STUDIO = 'studio="$1/.venv/bin/studio"; [ -x "$studio" ] || studio=studio\n'
_SAY_VERSIONS = f"""\
{FIND_STUDIO}
command -v "$studio" >/dev/null 2>&1 || exit {_NO_STUDIO}
command -v rsync >/dev/null 2>&1 || exit {_NO_RSYNC}
"$studio" --version
"""


@dataclass(frozen=True)
class Place:
    """A folder on another machine. host: as ssh takes it; folder: absolute, or inside the home folder there."""

    host: str
    folder: str

    @classmethod
    def parse(cls, text: str) -> Place:
        """What was typed: 'user@host:folder', 'host:folder', or 'host' for the home folder there. Raises UsageError."""
        host, _, folder = text.partition(":")
        if not host or host.startswith("-") or any(letter.isspace() for letter in host):
            raise UsageError(f"{text!r} names no folder on another machine.", "Write it as user@host:folder.")
        folder = "" if folder == "~" else folder.removeprefix("~/")
        folder = folder if folder == "/" else folder.rstrip("/")
        return cls(host, f"./{folder}" if folder.startswith("-") else folder or ".")

    def __str__(self) -> str:
        return self.host if self.folder == "." else f"{self.host}:{self.folder}"


class LinkLostError(RunError):
    """The other machine can't be reached, for now perhaps."""


class Link:
    """Talks to the machine of `place`; made by `linked`."""

    def __init__(self, place: Place, sockets: Path) -> None:
        self.place = place
        self._ssh = [*_SSH, "-o", f"ControlPath={sockets / 's'}"]

    def check(self) -> None:
        """Raise RunError unless the machine is there, with this studio, this torch and rsync."""
        place = self.place
        code, said, problem = self._run(_SAY_VERSIONS, place.folder, login=True)
        if code == _NO_STUDIO:
            hint = f"Install it in {place.folder}/.venv there, or where a login shell finds the command 'studio'."
            raise RunError(f"There is no studio on {place.host}.", hint)
        if code == _NO_RSYNC:
            raise RunError(f"There is no rsync on {place.host}.", "Install it there.")
        here, there = versions_in(versions_line()), versions_in(said.decode(errors="replace"))
        if there is None:
            hint = _last_line(problem) or "Install the same version on both machines."
            raise RunError(f"The studio on {place.host} does not say which torch it has.", hint)
        if there != here:
            title = f"{place.host} has {there}, and here is {here}."
            raise RunError(title, "Nothing was sent. Install the same versions on both machines.")

    def run(self, script: str, *arguments: str, given: bytes = b"", login: bool = False) -> bytes:
        """What a shell script prints there, which finds the folder as $1, `arguments` from $2 on and `given` as its
        input. login: by a login shell, which finds all programs, but may print more. Raises LinkLostError, and RunError
        when the script fails.
        """
        code, said, problem = self._run(script, self.place.folder, *arguments, given=given, login=login)
        if code:
            raise _refusal(self.place, problem)
        return said

    def send(self, run: Path, rules: Sequence[str]) -> None:
        """Make the run's folder there as it is here, as far as rsync's filter `rules` go. Raises RunError."""
        code, problem = self._rsync([*rules, "--delete", "--", f"{run}/", self._folder_of(run)])
        if any(words in problem for words in _FULL):
            raise RunError(f"The disk of {self.place.host} is full.", "Free some space there; nothing is lost here.")
        if code not in _FINE:
            raise _refusal(self.place, problem)

    def fetch(self, run: Path, rules: Sequence[str]) -> None:
        """Make the run's folder here as it is there, as far as the filter `rules` go. Raises RunError."""
        code, problem = self._rsync([*rules, "--", self._folder_of(run), f"{run}/"])
        if full := next((words for words in _FULL if words in problem), ""):
            raise UnwritableError(run, full)
        if code not in _FINE:
            raise _refusal(self.place, problem)

    def close(self) -> None:
        """Let the connection go."""
        self._call([*self._ssh, "-O", "exit", self.place.host])

    def _folder_of(self, run: Path) -> str:
        return f"{self.place.host}:{self.place.folder}/{run.name}/"

    def _run(self, script: str, *arguments: str, given: bytes = b"", login: bool = False) -> tuple[int, bytes, str]:
        """A shell script there: its exit code, output and errors. Raises LinkLostError."""
        words = shlex.join(["sh", "-lc" if login else "-c", script, "studio", *arguments])
        code, said, problem = self._call([*self._ssh, "--", self.place.host, words], given)
        if code == _REFUSED:
            raise _lost(self.place, problem)
        return code, said, problem

    def _rsync(self, words: Sequence[str]) -> tuple[int, str]:
        """The exit code and the errors. -s: names need no quotes for the shell there. --modify-window=-1: a file is
        another also where it is as long as it was and was written within the same second. Raises LinkLostError.
        """
        code, _, problem = self._call(["rsync", "-rts", "--modify-window=-1", "-e", shlex.join(self._ssh), *words])
        if code in _CUT and not any(words in problem for words in _FULL):
            raise _lost(self.place, problem)
        return code, problem

    def _call(self, words: Sequence[str], given: bytes = b"") -> tuple[int, bytes, str]:
        """Run a program here, out of reach of the terminal's Ctrl+C.

        Its errors go to a file: the connection that ssh keeps open would hold a pipe open as well.
        """
        with tempfile.TemporaryFile() as errors:
            done = subprocess.run(
                words, input=given, stdout=subprocess.PIPE, stderr=errors, start_new_session=True, check=False,
                env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
            errors.seek(0)
            return done.returncode, done.stdout, errors.read().decode(errors="replace")


@contextlib.contextmanager
def linked(place: Place) -> Iterator[Link]:
    """A link, which asks the other machine nothing yet. Raises RunError where ssh or rsync is missing here."""
    if missing := [tool for tool in ("ssh", "rsync") if shutil.which(tool) is None]:
        title = f"To train on another machine takes {' and '.join(missing)}, which this one does not have."
        raise RunError(title, "Install OpenSSH's client and rsync.")
    with tempfile.TemporaryDirectory(prefix="studio-") as sockets:
        link = Link(place, Path(sockets))
        try:
            yield link
        finally:
            link.close()


def _lost(place: Place, problem: str) -> LinkLostError:
    """Why ssh has not got through, as far as it says so in words that are known."""
    host, typed = place.host, command("ssh", place.host)
    if "Could not resolve hostname" in problem:
        return LinkLostError(f"There is no machine {host}.", "Look after its name, and after the network.")
    if "Host key verification failed" in problem:
        hint = f"Type '{typed}' once, and compare the fingerprint that it shows with that of the machine."
        return LinkLostError(f"{host} is not known here, or is another machine than it was.", hint)
    if "Permission denied" in problem:
        hint = f"'{typed}' must get in without a question: give a key that has a passphrase to the agent, by ssh-add."
        return LinkLostError(f"{host} lets nobody in.", hint)
    return LinkLostError(f"{host} can't be reached.", _last_line(problem))


def _refusal(place: Place, problem: str) -> RunError:
    return RunError(f"{place} does not take part.", _last_line(problem))


def _last_line(text: str) -> str:
    """The last line of what a program says, as a sentence; of rsync's, the one before its summary."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith("rsync error:")] or lines
    return f"{telling[-1].rstrip('.')}." if telling else ""
