r"""Read sets.csv, which assigns files to sets and cells.

    file,set,cell
    knight_front.png,knight,front
    old\k2.png,knight,back/step
    sheet.png#r1 c2,orc,front

File names are relative to the folder of the CSV, with or without suffix. Headings are optional; columns may have any
order.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

from studio.core.events import Event, Progress
from studio.core.names import escape_unprintable, nfc
from studio.core.threads import run_in_thread
from studio.data.files.source_files import ImportIssue, SourceFile, UnreadableFile, os_error_reason
from studio.data.images.decoding import read_bytes
from studio.data.labels.csv_rows import Problems, csv_rows, file_key, read_text_head, why_outside
from studio.data.sets.layout import Place
from studio.data.sets.naming import Places

FILE_NAME = "sets.csv"
_COLUMNS = ("file", "set", "cell")
_LONGEST = 200  # characters in a name
_AT_ONCE = 4096  # files or rows between two yields


@dataclass(frozen=True, slots=True)
class _Row:
    """A usable row. key: file name, relative to the folder of the CSV."""

    line: int
    key: str
    place: Place


@dataclass(eq=False, slots=True)
class _SetsFile:
    """A parsed sets.csv. folder: ends in '/'; '' for a file at the top."""

    file: SourceFile
    folder: str
    rows: list[_Row] = field(default_factory=list)
    problems: Problems = field(default_factory=Problems)


class SetTables:
    """The sets.csv files of an import; false without a usable row."""

    def __init__(self, files: Sequence[_SetsFile] = ()) -> None:
        self._files = files

    def __len__(self) -> int:
        return sum(len(each.rows) for each in self._files)

    def places(self, names: Sequence[str]) -> Places:
        """Return sprites' places from the tables, by index in `names`. Records problems for rows without a sprite."""
        places: Places = {}
        numbers: dict[str, int] = {}
        for number, name in enumerate(names if self._files else ()):
            path, mark, part = name.partition("#")
            folder, slash, file_name = path.rpartition("/")
            for key in (name, f"{folder}{slash}{file_name.rpartition('.')[0] or file_name}{mark}{part}"):
                numbers.setdefault(key, number)
        for each in self._files:
            prefix = each.folder if len(self._files) > 1 else ""
            if each.rows and not any(each.folder + row.key in numbers for row in each.rows):
                each.problems = Problems(
                    [(each.rows[0].line, "neither this nor a further line names an imported sprite")]
                )
                continue
            for row in each.rows:
                number = numbers.get(each.folder + row.key, -1)
                if number < 0:
                    each.problems.add(row.line, f"no sprite {row.key!r} was imported")
                elif number in places:
                    each.problems.add(row.line, f"{row.key!r} already has a place: {_words(places[number])}")
                else:
                    places[number] = row.place._replace(name=f"{prefix}{row.place.name}")
        return places

    def notes(self) -> Iterator[ImportIssue]:
        """Yield an issue per unusable line. Call `places` first."""
        for each in self._files:
            for sentence in each.problems.sentences():
                yield ImportIssue(each.file.name, sentence, "sets", each.file.path)


def read_set_tables(files: Sequence[SourceFile]) -> Generator[Event, None, tuple[SetTables, list[ImportIssue]]]:
    """Read every sets.csv among `files`; return the tables, and the issues of unusable files."""
    found = []
    for number, file in enumerate(files, 1):
        if file.file_name.lower() == FILE_NAME:
            found.append(file)
        if not number % _AT_ONCE:
            yield Progress(number, len(files), "files checked")
    return (yield from run_in_thread(_read(found), 0, "sets read")) if found else (SetTables(), [])


def _read(files: Sequence[SourceFile]) -> Generator[int, None, tuple[SetTables, list[ImportIssue]]]:
    tables, problems = list[_SetsFile](), list[ImportIssue]()
    for number, file in enumerate(files):
        name = nfc(file.name)
        table = _SetsFile(file, name[: name.rfind("/") + 1])
        try:
            for _ in _parse(read_bytes(file), table):
                yield number
        except UnreadableFile as error:
            problems.append(ImportIssue(file.name, error.reason, error.group, file.path))
        except OSError as error:
            problems.append(ImportIssue(file.name, os_error_reason(error, "file"), "no access", file.path))
        else:
            tables.append(table)
    return SetTables(tables), problems


def _parse(data: bytes, table: _SetsFile) -> Generator[None, None, None]:
    """Add the rows and problems of a CSV to `table`; yields None regularly. Raises UnreadableFile."""
    data, delimiter = read_text_head(data)
    if not delimiter:
        raise UnreadableFile("unreadable", "only one column: the columns are file, set and cell")
    order: tuple[int, ...] = (0, 1, 2)
    lines: dict[tuple[str, ...], int] = {}
    for number, (line, cells) in enumerate(csv_rows(data, delimiter, table.problems)):
        if not number % _AT_ONCE:
            yield
        lower = [cell.lower() for cell in cells]
        if not number and set(_COLUMNS) <= {*lower}:
            order = tuple(lower.index(column) for column in _COLUMNS)
            continue
        values = [cells[column] if column < len(cells) else "" for column in order]
        row = _Row(line, file_key(values[0]), _place(values[1], values[2]))
        problem = _problem(row, values, lines)
        if problem:
            table.problems.add(line, problem)
            continue
        lines[row.key,] = lines[tuple(row.place)] = line
        table.rows.append(row)


def _place(name: str, cell: str) -> Place:
    row, _, column = cell.partition("/")
    return Place(escape_unprintable(name), escape_unprintable(row.strip()), escape_unprintable(column.strip()))


def _problem(row: _Row, values: Sequence[str], lines: dict[tuple[str, ...], int]) -> str:
    """Return why a row is unusable; '' for a usable row. lines: line numbers by file, and by set and cell."""
    missing = next((column for column, value in zip(_COLUMNS, values, strict=True) if not value), "")
    if missing or not row.place.row:
        return f"no {missing or 'cell'}"
    if outside := why_outside(values[0]):
        return outside
    if max(map(len, row.place)) > _LONGEST or "/" in row.place.column:
        return f"its set or cell can't be read: at most {_LONGEST} letters, and one slash as in 'down/step'"
    if (row.key,) in lines:
        return f"{row.key!r} already has a row: line {lines[row.key,]:,}"
    if tuple(row.place) in lines:
        return f"{_words(row.place)} already has a file: line {lines[tuple(row.place)]:,}"
    return ""


def _words(place: Place) -> str:
    return f"cell {place.cell!r} of set {place.name!r}"
