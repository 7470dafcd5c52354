"""sets.csv: the places of sprites, and a sentence for each line that can't be used."""

from __future__ import annotations

from pathlib import Path

from studio.core.generators import run_to_end
from studio.data.files.source_files import ImportIssue
from studio.data.sets.table import SetTables, read_set_tables
from tests.data.making import found

NAMES = ["orc.png", "mon/elf.png", "all.png#r1 c1", "all.png#r1 c2", "imp.png"]


def read(folder: Path, data: bytes | str) -> tuple[SetTables, list[ImportIssue]]:
    path = folder / "Sets.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return run_to_end(read_set_tables([found(path)]))


def problems(folder: Path, text: str) -> list[str]:
    tables, _ = read(folder, text)
    tables.places(NAMES)
    return [note.reason for note in tables.notes() if note.group == "sets"]


def test_places(tmp_path: Path) -> None:
    text = "cell;set;file;artist\ndown;a;orc;me\nup / step;a;.\\mon\\elf.png;me\n\ndown;b;all.png#r1 c2;\n"
    tables, issues = read(tmp_path, text)
    assert not issues and len(tables) == 3
    assert tables.places(NAMES) == {0: ("a", "down", ""), 1: ("a", "up", "step"), 3: ("b", "down", "")}
    assert not list(tables.notes())
    without_headings, _ = read(tmp_path, "imp.png,c,left\n")
    assert without_headings.places(NAMES) == {4: ("c", "left", "")}


def test_every_unusable_line_is_named(tmp_path: Path) -> None:
    lines = [
        "orc.png,a,down", "orc,a,up", "orc.png,a,up", "mon/elf.png,a,down", "imp.png,,up", "imp.png,a", "no.png,b,down",
        "../up.png,b,up", "/imp.png,b,up", "imp.png,b,up/2/3", ",b,down", '"imp.png,b,left',
    ]  # fmt: skip
    assert problems(tmp_path, "\n".join(lines)) == [
        "line 2: 'orc' already has a place: cell 'down' of set 'a'",
        "line 3: 'orc.png' already has a row: line 1",
        "line 4: cell 'down' of set 'a' already has a file: line 1",
        "line 5: no set",
        "line 6: no cell",
        "line 7: no sprite 'no.png' was imported",
        "line 8: '../up.png' leads out of the folder of this table",
        "line 9: '/imp.png' is an absolute path: write the path relative to the folder of this table",
        "line 10: its set or cell can't be read: at most 200 letters, and one slash as in 'down/step'",
        "line 11: no file",
        "line 12: a quotation mark is not closed, or stands in the middle of a text",
    ]


def test_a_table_about_something_else_is_one_note(tmp_path: Path) -> None:
    text = "id,name,year\n1,Castle,1978\n2,Ship,1979\n"
    assert problems(tmp_path, text) == ["line 1: neither this nor a further line names an imported sprite"]


def test_unreadable_tables(tmp_path: Path) -> None:
    for data, reason in (
        (b"", "no text"),
        (b"orc.png\n", "only one column"),
        (b"a,b,\xff", "UTF-8"),
        (b"a,\0,b", "not a text"),
    ):
        tables, (issue,) = read(tmp_path, data)
        assert not tables and reason in issue.reason and issue.group == "unreadable"
