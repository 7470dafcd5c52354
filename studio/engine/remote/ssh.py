"""Run commands on another machine with ssh, and copy folders with rsync.

ssh never prompts (BatchMode) and gives up a dead connection after some seconds. All commands of an SshConnection share
one TCP connection. The other machine needs a POSIX shell, rsync and the studio.
"""

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
from typing import Self

from studio.core.errors import RunError, UnwritableError, UsageError
from studio.core.guide import MORE
from studio.core.shell import command_line
from studio.core.versions import versions_in, versions_line

_SSH_COMMAND = (
    "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5",
    "-o", "ServerAliveCountMax=3", "-o", "ControlMaster=auto", "-o", "ControlPersist=60",
)  # fmt: skip
_SSH_FAILED = 255  # ssh's exit code without a connection
_RSYNC_LOST = (_SSH_FAILED, 10, 12, 30, 35)  # rsync's exit codes after a broken connection: sockets, data, timeouts
_RSYNC_OK = (0, 24)  # 24: a file was deleted during the copy; the next copy corrects this
_DISK_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_NO_STUDIO, _NO_RSYNC = 3, 4
# -s: send file names without the remote shell. --modify-window=-1: compare times to the nanosecond; otherwise rsync
# skips a new version with equal length, written within a second.
_RSYNC_FLAGS = ("-s", "--modify-window=-1")
RENAME_LAST = "--delay-updates"  # rename all files at the end
_PROBE_RSYNC = (*_RSYNC_FLAGS, RENAME_LAST, "--version")  # fails on macOS's own rsync, works on GNU rsync 3.1.3
HOMEBREW_RSYNC = ("/opt/homebrew/bin/rsync", "/usr/local/bin/rsync")  # not on every login shell's PATH
FIND_STUDIO = 'studio="$1/.venv/bin/studio"; [ -x "$studio" ] || studio=studio\n'
# Print the studio's version, and the path of an rsync with _RSYNC_FLAGS, or else the first rsync's version.
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
_TARGET = re.compile(  # user and host don't begin with '-': ssh would read an option
    r"(?P<user>[^-\s:\[\]][^\s:\[\]]*@)?(?:\[(?P<address>[^\s\]]+)\]|(?P<name>[^-\s@:\[\]][^\s@:\[\]]*))(?::(?P<folder>.*))?",
    re.DOTALL,
)


@dataclass(frozen=True)
class RemoteTarget:
    """A folder on another machine, absolute or relative to the home folder. host: as for ssh, IPv6 without brackets."""

    host: str
    folder: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse 'user@host:folder', 'user@[fe80::1]:folder', or 'host' for its home folder. Raises UsageError."""
        parts = _TARGET.fullmatch(text)
        address, name, folder = (parts["address"], parts["name"], parts["folder"] or "") if parts else ("", "", "")
        is_ambiguous = name and (folder.startswith(":") or _is_ipv6(f"{name}:{folder}"))
        if parts is None or is_ambiguous or (address and not _is_ipv6(address)):
            hint = "Write it as user@host:folder, an IPv6 address in brackets: user@[fe80::1]:folder."
            raise UsageError(f"{text!r} is not a folder on another machine.", hint)
        host = f"{parts['user'] or ''}{address or name}"
        folder = "" if folder == "~" else folder.removeprefix("~/")
        folder = folder if folder == "/" else folder.rstrip("/")
        return cls(host, f"./{folder}" if folder.startswith("-") else folder or ".")

    @property
    def host_in_brackets(self) -> str:
        """The host with an IPv6 address in brackets, for rsync and for users."""
        user, at, machine = self.host.rpartition("@")
        return f"{user}{at}[{machine}]" if ":" in machine else self.host

    def __str__(self) -> str:
        host = self.host_in_brackets
        return host if self.folder == "." else f"{host}:{self.folder}"


class ConnectionLostError(RunError):
    """Raised after losing the connection to the other machine. A later attempt may succeed."""


class SshConnection:
    """Runs commands on another machine, and copies run folders to and from `target`. `connect` creates connections."""

    def __init__(self, target: RemoteTarget, sockets: Path) -> None:
        self.target = target
        self._ssh = [*_SSH_COMMAND, "-o", f"ControlPath={sockets / 's'}"]
        self._remote_rsync = "rsync"

    def check(self) -> None:
        """Raise RunError unless the machine has a usable rsync, and studio and torch in the local versions."""
        target = self.target
        if noise := _error_line(self.run("").decode(errors="replace")):
            hint = f"It printed: {noise} Change its start-up files to print in interactive shells only."
            raise RunError(f"The login shell on {target.host} prints extra text.", hint)
        code, output, stderr = self._run(_VERSIONS_SCRIPT, target.folder, *HOMEBREW_RSYNC, login=True)
        if code == _NO_STUDIO:
            hint = f"Install it in {target.folder}/.venv there, or where a login shell finds the command 'studio'."
            raise RunError(f"The studio is not installed on {target.host}.", hint)
        if code == _NO_RSYNC:
            raise _no_rsync_error(target.host, stderr, " there")
        text = output.decode(errors="replace")
        here, there = versions_in(versions_line()), versions_in(text)
        if there is None:
            hint = _error_line(stderr) or "Install the same version on both machines."
            raise RunError(f"The studio on {target.host} does not report its torch version.", hint)
        if there != here:
            title = f"{target.host} has {there}; this machine has {here}."
            raise RunError(title, "Install equal versions on both machines. The run was not sent.")
        if path := _RSYNC_FOUND.search(text.replace("\r", "")):
            self._remote_rsync = path[1]

    def run(self, script: str, *arguments: str, login: bool = False) -> bytes:
        """Run a shell script, with the remote folder as $1 and then `arguments`, and return its output.

        login: in a login shell, with the full PATH but maybe extra output. Raises ConnectionLostError, RunError.
        """
        code, output, stderr = self._run(script, self.target.folder, *arguments, login=login)
        if code:
            raise command_error(self.target, stderr)
        return output

    def send(self, run: Path, rules: Sequence[str]) -> None:
        """Copy a run folder to the other machine, and delete files there that are gone here. Raises RunError.

        rules: rsync filter rules.
        """
        code, stderr = self._rsync([*rules, "--delete", "--", f"{run.absolute()}/", self._remote_folder(run)])
        if any(message in stderr for message in _DISK_FULL):
            hint = "Free some space on that machine. The local run folder is complete."
            raise RunError(f"The disk of {self.target.host} is full.", hint)
        if code not in _RSYNC_OK:
            raise command_error(self.target, stderr)

    def fetch(self, run: Path, rules: Sequence[str]) -> None:
        """Copy new files of a run here by rsync filter `rules`; delete no files. Raises RunError, UnwritableError."""
        code, stderr = self._rsync([*rules, "--", self._remote_folder(run), f"{run.absolute()}/"])
        if full := next((message for message in _DISK_FULL if message in stderr), ""):
            raise UnwritableError(run, full)
        if code not in _RSYNC_OK:
            raise command_error(self.target, stderr)

    def close(self) -> None:
        """Close the shared connection."""
        self._call([*self._ssh, "-O", "exit", self.target.host])

    def _remote_folder(self, run: Path) -> str:
        return f"{self.target.host_in_brackets}:{self.target.folder}/{run.name}/"

    def _run(self, script: str, *arguments: str, login: bool = False) -> tuple[int, bytes, str]:
        """Run a shell script on the machine; return exit code, output and errors. Raises ConnectionLostError."""
        whole = f"set -- {shlex.join(arguments)}\n{script}"
        command = _RUN_STDIN.format(flags="-lc" if login else "-c")
        code, output, stderr = self._call([*self._ssh, "--", self.target.host, command], os.fsencode(whole))
        if code == _SSH_FAILED:
            raise _connection_error(self.target, stderr)
        return code, output, stderr

    def _rsync(self, arguments: Sequence[str]) -> tuple[int, str]:
        """Run rsync; return exit code and errors. Raises ConnectionLostError."""
        remote_rsync = shlex.quote(self._remote_rsync)
        flags = ["-rt", *_RSYNC_FLAGS, f"--rsync-path={remote_rsync}", "-e", shlex.join(self._ssh)]
        code, _, stderr = self._call(["rsync", *flags, *arguments])
        if code in _RSYNC_LOST and not any(message in stderr for message in _DISK_FULL):
            raise _connection_error(self.target, stderr)
        return code, stderr

    def _call(self, arguments: Sequence[str], stdin: bytes = b"") -> tuple[int, bytes, str]:
        """Run a local program, out of reach of Ctrl+C, and return its exit code, output and error output.

        Errors go to a file, because the shared ssh connection stays open and would keep a pipe open too.
        """
        with tempfile.TemporaryFile() as errors:
            done = subprocess.run(
                arguments, input=stdin, stdout=subprocess.PIPE, stderr=errors, start_new_session=True, check=False,
                env={**os.environ, "LC_ALL": "C"},
            )  # fmt: skip
            errors.seek(0)
            return done.returncode, done.stdout, errors.read().decode(errors="replace")


@contextlib.contextmanager
def connect(target: RemoteTarget) -> Iterator[SshConnection]:
    """Yield a connection, opened on first use. Raises RunError if ssh or a usable rsync is missing here."""
    if missing := [tool for tool in ("ssh", "rsync") if shutil.which(tool) is None]:
        title = f"Remote training needs {' and '.join(missing)} on this machine."
        raise RunError(title, "Install OpenSSH's client and rsync.")
    if subprocess.run(["rsync", *_PROBE_RSYNC], capture_output=True, check=False).returncode:
        version = subprocess.run(["rsync", "--version"], capture_output=True, check=False).stdout
        raise _no_rsync_error("This machine", version.decode(errors="replace").partition("\n")[0])
    with tempfile.TemporaryDirectory(prefix="studio-") as sockets:
        connection = SshConnection(target, Path(sockets))
        try:
            yield connection
        finally:
            connection.close()


def _no_rsync_error(where: str, version: str, there: str = "") -> RunError:
    """Return the error for a machine without a usable rsync. version: first line of `rsync --version`, may be empty."""
    found = f" Found: {_error_line(version)}" if version.strip() else ""
    hint = f"Install it{there}; on macOS: brew install rsync.{found}"
    return RunError(f"{where} has no rsync 3.1.3 or newer.", hint)


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _connection_error(target: RemoteTarget, stderr: str) -> ConnectionLostError:
    host, typed = target.host, command_line("ssh", target.host)
    if "Could not resolve hostname" in stderr:
        return ConnectionLostError(f"There is no machine named {host}.", "Check the name and the network.")
    if "Host key verification failed" in stderr:
        hint = f"Run '{typed}' once and compare the shown fingerprint with the machine's."
        return ConnectionLostError(f"The identity of {host} is unknown or has changed.", hint)
    if "Permission denied" in stderr:
        hint = f"'{typed}' must work without a prompt. Add a key with a passphrase to the agent: ssh-add."
        return ConnectionLostError(f"{host} denied access.", hint)
    return ConnectionLostError(f"{host} can't be reached.", _error_line(stderr))


def command_error(target: RemoteTarget, stderr: str) -> RunError:
    """Return the error for a failed command on the other machine. stderr: the command's error output."""
    return RunError(f"The command failed on {target}.", _error_line(stderr))


def _error_line(text: str) -> str:
    """Return a program's last line of output, ended with a period; '' without output.

    Leaves out rsync's summary and the studio's line about its guide.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if not line.startswith(("rsync error:", MORE))] or lines
    return f"{errors[-1].rstrip('.')}." if errors else ""
