"""Quote the commands that the studio prints for users to paste into a terminal."""

from __future__ import annotations

import re
import shlex
import sys

_SAFE_ON_WINDOWS = re.compile(r"[\w.:/\\+=-]+", re.ASCII)
# In double quotes PowerShell replaces $name and $(command), and takes curly quotes for straight ones.
_POWERSHELL_READS = re.compile("([`$\u201c\u201d\u201e])")


def command_line(*words: str) -> str:
    """Return a command line that a shell splits into exactly these words."""
    return " ".join(map(quote, words))


def quote(word: str) -> str:
    """Quote a word of a command line for the shells of this system."""
    return _for_windows(word) if sys.platform == "win32" else shlex.quote(word)


def _for_windows(word: str) -> str:
    """Quote a word for cmd and PowerShell. Words with '$' work in PowerShell only: cmd keeps the escaping backtick."""
    if _SAFE_ON_WINDOWS.fullmatch(word):
        return word
    escaped = _POWERSHELL_READS.sub(r"`\1", word).replace('"', '""')
    end = escaped[len(escaped.rstrip("\\")) :]  # final backslashes would escape the closing quote
    return f'"{escaped}{end}"'
