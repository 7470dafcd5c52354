"""The outermost edge of the command line: whatever happens inside becomes a sentence and an exit code here."""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

from studio.cli.interrupts import ending
from studio.cli.messages import FAILED, INTERRUPTED, WRONG_USAGE
from studio.core import logs
from studio.core.errors import StudioError, UsageError
from studio.core.events import JobFailed
from studio.core.formatting import describe_error
from studio.core.process import prepare_for_training
from studio.core.shell import command_line

_log = logging.getLogger(__name__)


def run(arguments: Sequence[str] | None) -> int:
    """Parse and do; returns the exit code. `None` is the command line of this process, which then keeps a log."""
    if arguments is None:
        logs.start()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # on Windows a program without a console has neither
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - until the end
    words = list(sys.argv[1:] if arguments is None else arguments)
    prepare_for_training()
    warnings.filterwarnings("ignore", module="PIL")  # which files are damaged is said by their names
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal can't show ends nothing
    try:
        with ending():
            return _guarded(words)
    except BrokenPipeError:  # 'studio runs | head': nobody reads on
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for the flush at exit
        return FAILED


def _guarded(words: list[str]) -> int:
    args = argparse.Namespace()
    try:
        from studio.cli.parser import parse

        args = parse(words)
        _log.info("%s", command_line("studio", *words))
        code = int(args.run(args))
        sys.stdout.flush()
        _log.info("ended with exit code %d", code)
        return code
    except SystemExit as leaving:  # argparse has said what is wrong, or printed the help
        return leaving.code if isinstance(leaving.code, int) else FAILED
    except StudioError as error:
        return _failed(error.title, error.hint, args, WRONG_USAGE if isinstance(error, UsageError) else FAILED)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        _log.info("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f" ({os.fsdecode(error.filename)})" if error.filename else ""
        return _failed(f"The system says: {error.strerror or error}{where}.", "", args, FAILED)
    except Exception as error:  # noqa: BLE001 - the boundary: what gets here is a bug, the studio's or a plug-in's
        title, what = describe_error(error, otherwise="This is a bug in the studio.")
        hint = "" if getattr(args, "debug", False) else "The same command with --debug shows where it happened."
        return _failed(f"{title.removesuffix('.')}: {what}", hint, args, FAILED)


def _failed(title: str, hint: str, args: argparse.Namespace, code: int) -> int:
    """Say what went wrong on stderr, and as an event on stdout where the output is JSON."""
    _log.error("%s %s", title, hint, exc_info=True)
    details = traceback.format_exc() if getattr(args, "debug", False) else ""
    if getattr(args, "json", False):
        from studio.cli.as_json import line

        print(line(JobFailed(title, hint, details)), flush=True)  # noqa: T201
    sys.stderr.write(details)
    sys.stderr.write(f"{title}\n")
    if hint:
        sys.stderr.write(f"{hint}\n")
    return code
