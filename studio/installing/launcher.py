"""Start the studio that an installer brought; before, set up its environment if the user agrees.

The installer's script `start` runs `main`. Its own options come first: --setup [--torch BUILD] and --repair install,
--uninstall deletes, --yes agrees without a question. All other arguments go to the studio.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from studio.installing import environment, locks, menu_entry, setup, torch_builds
from studio.installing.environment import InstallError
from studio.installing.payload import APP, Installed, environment_python, own_payload, program_folder, read_installed
from studio.installing.setup import CLOSED, INSTALLED, LATER, Answer, Setup

_OPTIONS = ("--setup", "--repair", "--uninstall", "--register")
_SOON_S = 20  # a studio that ends with an error within this time could not start
_SIGNALS = (130, 143, -2, -15)  # exit codes of a studio that was stopped on purpose


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the launcher. Returns the exit code, or becomes the studio."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    program = program_folder()
    if words[:1] == ["--check"]:  # of the self-extracting installer: this computer has a fitting Python
        return 0
    if words[:1] == ["--uninstall"]:
        return _uninstall(program, agreed="--yes" in words)
    if words[:1] == ["--register"]:  # of the self-extracting installer
        menu_entry.register(own_payload().folder)
        del words[0]
    if words[:1] in (["--setup"], ["--repair"]):
        wanted = words[words.index("--torch") + 1] if "--torch" in words[:-1] else ""
        found = Setup(own_payload(), program, torch_builds.detect(), repair=words[0] == "--repair", wanted=wanted)
        return 0 if _offer(found, words, agreed="--yes" in words) == INSTALLED else 1
    installed = read_installed(program)
    if installed is None or not installed.is_current(own_payload()):
        found = Setup(own_payload(), program, torch_builds.detect())
        if _offer(found, words) == CLOSED:
            return 1
        installed = read_installed(program)
    return _start(installed, words, program) if installed else 1


def _offer(found: Setup, words: Sequence[str], *, agreed: bool = False) -> Answer:
    """Ask the user in a window or in the terminal, and install."""
    if agreed or not _has_screen(words):
        return _in_terminal(found, agreed=agreed)
    from studio.installing.window import SetupWindow

    return SetupWindow(found).ask()


def _start(installed: Installed, words: list[str], program: Path) -> int:
    """Start the studio. From a desktop menu, offer a repair if it can't start; in a terminal, become the studio."""
    locks.hold(program / installed.folder / "in-use")
    with contextlib.suppress(OSError, locks.LockedError), locks.exclusive(program / "lock"):
        environment.delete_unused(program)  # left by a change of PyTorch's build
    command = _command(installed, words, program)
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    variables["STUDIO_LAUNCHER"] = str(own_payload().start)
    if _is_command(words) or _in_a_terminal():
        return _become(command, variables)
    began, log = time.monotonic(), program / "start.log"
    with log.open("wb") as output:
        no_console = getattr(subprocess, "CREATE_NO_WINDOW", 0)  # on Windows, a Python without pythonw opens one
        code = subprocess.call(
            command, env=variables, stdout=output, stderr=subprocess.STDOUT, creationflags=no_console
        )
    if code == 0 or code in _SIGNALS or time.monotonic() - began > _SOON_S:
        return code
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [f"exit code {code}"]
    problem = f"The studio stopped: {lines[-1]}"
    found = Setup(own_payload(), program, torch_builds.detect(), repair=True, problem=problem)
    if _offer(found, words) == INSTALLED and (repaired := read_installed(program)):
        return _start(repaired, words, program)
    return code


def _command(installed: Installed, words: list[str], program: Path) -> list[str]:
    return [str(environment_python(program / installed.folder)), "-m", "studio", *words]


def _become(command: list[str], variables: dict[str, str]) -> int:
    """Replace this process by the studio. Windows can't: wait for the studio, and return its exit code."""
    if os.name != "nt":
        os.execve(command[0], command, variables)
    process = subprocess.Popen(command, env=variables)
    while True:
        with contextlib.suppress(KeyboardInterrupt):  # Ctrl+C reaches the studio, too
            return process.wait()


def _is_command(words: Sequence[str]) -> bool:
    """Return whether the arguments are a command of the studio, not files to open in its window."""
    return bool(words) and words[0] not in _OPTIONS and not Path(words[0]).exists()


def _in_a_terminal() -> bool:
    return any(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _has_screen(words: Sequence[str]) -> bool:
    """Return whether to show a window: not for a command of the studio, and not without a screen or tkinter."""
    if _is_command(words):
        return False
    try:
        import tkinter
    except ImportError:
        return False
    try:
        tkinter.Tk().destroy()
    except tkinter.TclError:
        return False
    return True


def _in_terminal(found: Setup, *, agreed: bool) -> Answer:
    """Ask and install in the terminal."""
    build, declined = found.suggested, LATER if found.older_version else CLOSED
    _say(*filter(None, (found.title, found.problem, found.advice)))
    if why_not := found.why_not(build):
        _say(why_not)
        return declined
    assert build is not None
    _say(found.describe(build))
    if not agreed and not _agrees("Go on?", "--setup"):
        return declined
    try:
        last = ""
        with contextlib.closing(found.run(build)) as steps:
            for progress in steps:
                if progress.text != last:
                    _say(f"{progress.share:4.0%}  {progress.text}")
                    last = progress.text
    except InstallError as error:
        _say(str(error), f"Details: {found.log_path}")
        return CLOSED
    except KeyboardInterrupt:
        _say("", "Cancelled. What has been fetched is kept.")
        return CLOSED
    _say(f"{APP} is ready.")
    return INSTALLED


def _uninstall(program: Path, *, agreed: bool) -> int:
    """Delete environments and caches after a question, and the menu entry of the self-extracting installer."""
    if program.exists():
        size = setup.gigabytes(environment.folder_size(program))
        _say(f"Environments and caches in {program}: {size}. Your runs and settings in {program.parent} stay.")
        if not agreed and not _agrees("Delete them?", "--uninstall"):
            return 1
        _say("Deleting. This may take some minutes.")
    menu_entry.unregister(own_payload().folder)
    setup.uninstall(program)
    _say("Deleted.")
    return 0


def _agrees(question: str, option: str) -> bool:
    """Ask in the terminal; without a terminal, say how to agree."""
    if sys.stdin is None or not sys.stdin.isatty():
        _say(f"Agree with: {own_payload().start} {option} --yes")
        return False
    try:
        return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _say(*lines: str) -> None:
    """Write lines to the terminal; without a terminal on Windows, do nothing."""
    if sys.stdout is not None:
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
