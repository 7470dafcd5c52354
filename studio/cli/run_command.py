"""Run a command line, and turn every exception into a message on stderr and an exit code."""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

from studio.cli.messages import FAILED, INTERRUPTED, WRONG_USAGE
from studio.cli.signal_handlers import interrupt_on_signal
from studio.core import logs
from studio.core.errors import StudioError, UsageError, os_error_reason
from studio.core.events import JobFailed
from studio.core.formatting import describe_error
from studio.core.guide import MORE
from studio.core.shell import command_line

_log = logging.getLogger(__name__)


def run_command(arguments: Sequence[str] | None) -> int:
    """Parse and run a command line; return the exit code. None means sys.argv, and also starts the log file."""
    if arguments is None:
        logs.start()
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # a Windows program without a console has no streams
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - open until exit
    words = list(sys.argv[1:] if arguments is None else arguments)
    warnings.filterwarnings("ignore", module="PIL")  # the import reports damaged files by name
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a file name the terminal can't show must not raise
    try:
        with interrupt_on_signal():
            return _run_caught(words)
    except BrokenPipeError:  # 'studio runs | head' closes the pipe early
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for the flush at exit
        return FAILED


def _run_caught(words: list[str]) -> int:
    """Run a command and print its errors; return the exit code. Raises BrokenPipeError."""
    args = argparse.Namespace()
    try:
        from studio.cli.parser import parse

        args = parse(words)
        _log.info("%s", command_line("studio", *words))
        code = int(args.run(args))
        sys.stdout.flush()
        _log.info("ended with exit code %d", code)
        return code
    except SystemExit as leaving:  # argparse has printed its message
        return leaving.code if isinstance(leaving.code, int) else FAILED
    except StudioError as error:
        code = WRONG_USAGE if isinstance(error, UsageError) else FAILED
        return _failed(error.title, error.hint, args, code, error.topic)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        _log.info("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        where = f" ({os.fsdecode(error.filename)})" if error.filename else ""
        return _failed(f"{os_error_reason(error)}{where}.", "", args, FAILED)
    except Exception as error:  # noqa: BLE001 - a bug of the studio or of a plug-in; show it as a message
        title, what = describe_error(error, otherwise="This is a bug in the studio.")
        hint = "" if getattr(args, "debug", False) else "Run the command with --debug to see the traceback."
        return _failed(f"{title.removesuffix('.')}: {what}", hint, args, FAILED)


def _failed(title: str, hint: str, args: argparse.Namespace, code: int, topic: str = "") -> int:
    """Print an error to stderr, and with --json also as a JobFailed event to stdout; return `code`.

    topic: 'topic#section' of the guide with more help, or ''.
    """
    _log.error("%s %s", title, hint, exc_info=True)
    details = traceback.format_exc() if getattr(args, "debug", False) else ""
    if getattr(args, "json", False):
        from studio.cli.json_lines import to_json_line

        print(to_json_line(JobFailed(title, hint, details, topic)), flush=True)  # noqa: T201
    sys.stderr.write(details)
    sys.stderr.write(f"{title}\n")
    if hint:
        sys.stderr.write(f"{hint}\n")
    if topic:
        sys.stderr.write(f"{MORE}{topic}\n")
    return code
