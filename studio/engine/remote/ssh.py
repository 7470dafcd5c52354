"""A folder on another machine: commands run there by ssh, files go there and come back by rsync. No torch here.

Nothing is asked on the way (BatchMode), and a link that is dead is given up after some seconds. All calls of a Link
share one connection. The machine there needs a POSIX shell, rsync and the studio.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from studio.core.errors import RunError, UnwritableError, UsageError
from studio.core.shell import command_line
from studio.core.versions import versions_in, versions_line

_SSH_COMMAND = (
    "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5",
    "-o", "ServerAliveCountMax=3", "-o", "ControlMaster=auto", "-o", "ControlPersist=60",
)  # fmt: skip
_SSH_FAILED = 255  # ssh's exit code when it has not got through
_RSYNC_LOST = (_SSH_FAILED, 10, 12, 30, 35)  # rsync's when the link is lost: sockets, the data stream, timeouts
_RSYNC_OK = (0, 24)  # 24: a file vanished while it was sent; the next time tells
_DISK_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_NO_STUDIO, _NO_RSYNC = 3, 4
# -s: file names need no quotes for the remote shell. --modify-window=-1: compare times to the nanosecond; otherwise
# rsync skips a new version of equal length that was written within the same second.
_RSYNC_FLAGS = ("-s", "--modify-window=-1")
RENAME_LAST = "--delay-updates"  # rename all files at the end
_PROBE_RSYNC = (*_RSYNC_FLAGS, RENAME_LAST, "--version")  # fails on macOS's own rsync, works on GNU rsync 3.1.3
HOMEBREW_RSYNC = ("/opt/homebrew/bin/rsync", "/usr/local/bin/rsync")  # not on every login shell's PATH
FIND_STUDIO = 'studio="$1/.venv/bin/studio"; [ -x "$studio" ] || studio=studio\n'
# Print the studio's version and the path of an rsync with these flags; without one, the version of the first rsync.
_VERSIONS_SCRIPT = f"""\
{FIND_STUDIO}
command -v "$studio" >/dev/null 2>&1 || exit {_NO_STUDIO}
first=$(command -v rsync)
shift
for rsync in "$first" "$@"; do
  [ -x "$rsync" ] && "$rsync" {" ".join(_PROBE_RSYNC)} >/dev/null 2>&1 && break
  rsync=
done
if [ -z "$rsync" ]; then "$first" --version 2>/dev/null | head -n 1 >&2; exit {_NO_RSYNC}; fi
echo "rsync=$rsync"
"$studio" --version
"""
_RSYNC_FOUND = re.compile(r"^rsync=(/.*)$", re.MULTILINE)
# The remote login shell may be csh or fish: the script goes through stdin, because csh accepts no quoted line breaks.
_RUN_STDIN = "exec sh -c 'script=$(cat) && exec sh {flags} \"$script\" </dev/null'"
_TARGET = re.compile(  # neither user nor host begins with '-', which ssh would take for an option
    r"(?P<user>[^-\s:\[\]][^\s:\[\]]*@)?(?:\[(?P<address>[^\s\]]+)\]|(?P<name>[^-\s@:\[\]][^\s@:\[\]]*))(?::(?P<folder>.*))?",
    re.DOTALL,
)


@dataclass(frozen=True)
class RemoteTarget:
    """A folder on another machine.

    host: as ssh takes it, with IPv6 addresses without brackets. folder: absolute, or relative to the home folder there.
    """

    host: str
    folder: str

    @classmethod
    def parse(cls, text: str) -> RemoteTarget:
        """Parse 'user@host:folder', 'host:folder', or 'host' for the home folder there. Raises UsageError.

        An IPv6 address stands in brackets: 'user@[fe80::1]:folder'.
        """
        parts = _TARGET.fullmatch(text)
        address, name, folder = (parts["address"], parts["name"], parts["folder"] or "") if parts else ("", "", "")
        is_ambiguous = name and (folder.startswith(":") or _is_ipv6(f"{name}:{folder}"))
        if parts is None or is_ambiguous or (address and not _is_ipv6(address)):
            hint = "Write it as user@host:folder, an IPv6 address in brackets: user@[fe80::1]:folder."
            raise UsageError(f"{text!r} names no folder on another machine.", hint)
        host = f"{parts['user'] or ''}{address or name}"
        folder = "" if folder == "~" else folder.removeprefix("~/")
        folder = folder if folder == "/" else folder.rstrip("/")
        return cls(host, f"./{folder}" if folder.startswith("-") else folder or ".")

    @property
    def host_in_brackets(self) -> str:
        """The host as rsync and users write it before a colon: an IPv6 address in brackets."""
        user, at, machine = self.host.rpartition("@")
        return f"{user}{at}[{machine}]" if ":" in machine else self.host

    def __str__(self) -> str:
        host = self.host_in_brackets
        return host if self.folder == "." else f"{host}:{self.folder}"


class ConnectionLostError(RunError):
    """The other machine can't be reached, for now perhaps."""


class SshConnection:
    """Talks to the machine of `place`; made by `connect`."""

    def __init__(self, place: RemoteTarget, sockets: Path) -> None:
        self.place = place
        self._ssh = [*_SSH_COMMAND, "-o", f"ControlPath={sockets / 's'}"]
        self._rsync_there = "rsync"

    def check(self) -> None:
        """Raise RunError unless the machine has the versions of studio and torch used here, and a usable rsync."""
        place = self.place
        if noise := _last_line(self.run("").decode(errors="replace")):
            hint = f"It printed: {noise} Let its start-up files print in interactive shells only."
            raise RunError(f"The login shell on {place.host} prints text of its own.", hint)
        code, said, problem = self._run(_VERSIONS_SCRIPT, place.folder, *HOMEBREW_RSYNC, login=True)
        if code == _NO_STUDIO:
            hint = f"Install it in {place.folder}/.venv there, or where a login shell finds the command 'studio'."
            raise RunError(f"There is no studio on {place.host}.", hint)
        if code == _NO_RSYNC:
            raise _no_rsync_error(place.host, problem, " there")
        text = said.decode(errors="replace")
        here, there = versions_in(versions_line()), versions_in(text)
        if there is None:
            hint = _last_line(problem) or "Install the same version on both machines."
            raise RunError(f"The studio on {place.host} does not say which torch it has.", hint)
        if there != here:
            title = f"{place.host} has {there}, and here is {here}."
            raise RunError(title, "Nothing was sent. Install the same versions on both machines.")
        if path := _RSYNC_FOUND.search(text.replace("\r", "")):
            self._rsync_there = path[1]

    def run(self, script: str, *arguments: str, login: bool = False) -> bytes:
        """Run a shell script on the machine and return its output. The script gets the folder as $1, then `arguments`.

        login: use a login shell, which finds all programs but may print text of its own. Raises LinkLostError, and
        RunError when the script fails.
        """
        code, said, problem = self._run(script, self.place.folder, *arguments, login=login)
        if code:
            raise command_error(self.place, problem)
        return said

    def send(self, run: Path, rules: Sequence[str]) -> None:
        """Make the run's folder there as it is here, as far as rsync's filter `rules` go. Raises RunError."""
        code, problem = self._rsync([*rules, "--delete", "--", f"{run.absolute()}/", self._folder_of(run)])
        if any(words in problem for words in _DISK_FULL):
            raise RunError(f"The disk of {self.place.host} is full.", "Free some space there; nothing is lost here.")
        if code not in _RSYNC_OK:
            raise command_error(self.place, problem)

    def fetch(self, run: Path, rules: Sequence[str]) -> None:
        """Copy new files of the run from the machine, by rsync's filter `rules`; delete nothing. Raises RunError."""
        code, problem = self._rsync([*rules, "--", self._folder_of(run), f"{run.absolute()}/"])
        if full := next((words for words in _DISK_FULL if words in problem), ""):
            raise UnwritableError(run, full)
        if code not in _RSYNC_OK:
            raise command_error(self.place, problem)

    def close(self) -> None:
        """Let the connection go."""
        self._call([*self._ssh, "-O", "exit", self.place.host])

    def _folder_of(self, run: Path) -> str:
        return f"{self.place.host_in_brackets}:{self.place.folder}/{run.name}/"

    def _run(self, script: str, *arguments: str, login: bool = False) -> tuple[int, bytes, str]:
        """Run a shell script on the machine; return its exit code, output and errors. Raises LinkLostError."""
        whole = f"set -- {shlex.join(arguments)}\n{script}"
        words = _RUN_STDIN.format(flags="-lc" if login else "-c")
        code, said, problem = self._call([*self._ssh, "--", self.place.host, words], os.fsencode(whole))
        if code == _SSH_FAILED:
            raise _connection_error(self.place, problem)
        return code, said, problem

    def _rsync(self, words: Sequence[str]) -> tuple[int, str]:
        """Run rsync; return its exit code and errors. Raises LinkLostError."""
        there = shlex.quote(self._rsync_there)
        flags = ["-rt", *_RSYNC_FLAGS, f"--rsync-path={there}", "-e", shlex.join(self._ssh)]
        code, _, problem = self._call(["rsync", *flags, *words])
        if code in _RSYNC_LOST and not any(words in problem for words in _DISK_FULL):
            raise _connection_error(self.place, problem)
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
def connect(place: RemoteTarget) -> Iterator[SshConnection]:
    """Give a link that connects on first use. Raises RunError if ssh or a usable rsync is missing here."""
    if missing := [tool for tool in ("ssh", "rsync") if shutil.which(tool) is None]:
        title = f"To train on another machine takes {' and '.join(missing)}, which this one does not have."
        raise RunError(title, "Install OpenSSH's client and rsync.")
    if subprocess.run(["rsync", *_PROBE_RSYNC], capture_output=True, check=False).returncode:
        version = subprocess.run(["rsync", "--version"], capture_output=True, check=False).stdout
        raise _no_rsync_error("This machine", version.decode(errors="replace").partition("\n")[0])
    with tempfile.TemporaryDirectory(prefix="studio-") as sockets:
        link = SshConnection(place, Path(sockets))
        try:
            yield link
        finally:
            link.close()


def _no_rsync_error(where: str, version: str, there: str = "") -> RunError:
    """Return the error for a machine without a usable rsync. version: first line of `rsync --version`, may be empty."""
    found = f" It has: {_last_line(version)}" if version.strip() else ""
    hint = f"Install it{there}; on macOS: brew install rsync.{found}"
    return RunError(f"{where} has no rsync 3.1.3 or newer.", hint)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _connection_error(place: RemoteTarget, problem: str) -> ConnectionLostError:
    """Why ssh has not got through, as far as it says so in words that are known."""
    host, typed = place.host, command_line("ssh", place.host)
    if "Could not resolve hostname" in problem:
        return ConnectionLostError(f"There is no machine {host}.", "Look after its name, and after the network.")
    if "Host key verification failed" in problem:
        hint = f"Type '{typed}' once, and compare the fingerprint on the screen with the machine's."
        return ConnectionLostError(f"{host} is not known here, or is another machine than it was.", hint)
    if "Permission denied" in problem:
        hint = f"'{typed}' must get in without a question: give a key that has a passphrase to the agent, by ssh-add."
        return ConnectionLostError(f"{host} lets nobody in.", hint)
    return ConnectionLostError(f"{host} can't be reached.", _last_line(problem))


def command_error(place: RemoteTarget, problem: str) -> RunError:
    return RunError(f"{place} does not take part.", _last_line(problem))


def _last_line(text: str) -> str:
    """The last line of what a program says, as a sentence; of rsync's, the one before its summary."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith("rsync error:")] or lines
    return f"{telling[-1].rstrip('.')}." if telling else ""
