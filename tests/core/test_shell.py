"""Printed commands: a shell must read back exactly the words, and must not run a part of them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import studio
from studio.core.shell import command_line, quote

_HOSTILE = [
    "$(touch x)",
    "`touch x`",
    "a;touch x",
    "a&touch x",
    "a b",
    "it's",
    'say "hi"',
    "*",
    "~",
    "a\\b",
    "",
    "é",
    "!x",
]
_SOURCES = Path(studio.__file__).parent
# A program and its arguments, up to where a value is filled in.
_STUDIO = "studio (train|resume|generate|predict|evaluate|export|lab|queue|runs|verify|inspect|distil|palette|report)"
_BEGINS_COMMAND = re.compile(rf"\b({_STUDIO}|python|tensorboard|ssh|cc|--[a-z-]+)( [\w./$-]+)* [\"']?$")
_MAY_NAME_COMMAND = re.compile(r"\b(studio|python|tensorboard|ssh|cc) |--[a-z]")  # few modules do


def test_shell_parses_quoted_words_and_runs_nothing(tmp_path: Path) -> None:
    line = command_line("printf", r"%s\n", *_HOSTILE)
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.split("\n")[:-1] == _HOSTILE
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("word", "typed"),
    [
        (r"C:\runs\night", r"C:\runs\night"),
        (r"C:\my runs", r'"C:\my runs"'),
        ("C:\\my runs\\", '"C:\\my runs\\\\"'),
        ("a&calc", '"a&calc"'),
        ("it's", '"it\'s"'),
        ("$(calc)", '"`$(calc)"'),
        ("`calc`", '"``calc``"'),
        ("\u201d; calc; \u201d", '"`\u201d; calc; `\u201d"'),
        ('say "hi"', '"say ""hi"""'),
        ("", '""'),
    ],
)
def test_windows_gets_double_quotes_with_powershells_escapes(
    word: str, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert quote(word) == typed


def test_no_module_quotes_a_printed_command_itself() -> None:
    found = []
    texts = {path: path.read_text("utf-8") for path in _SOURCES.rglob("*.py")}
    for path in (path for path, text in texts.items() if _MAY_NAME_COMMAND.search(text)):
        for node in ast.walk(ast.parse(texts[path])):
            if isinstance(node, ast.JoinedStr):
                for before, value in zip(node.values, node.values[1:], strict=False):
                    if isinstance(before, ast.Constant) and isinstance(value, ast.FormattedValue):
                        text = str(before.value)
                        if _BEGINS_COMMAND.search(text):
                            found.append(f"{path.relative_to(_SOURCES)}:{node.lineno}: {text}")
    assert not found
