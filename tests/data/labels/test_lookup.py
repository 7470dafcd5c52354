"""labels.csv beside pictures: classes and numbers, and what is said of every line that lies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studio.core.errors import BadInputError
from studio.core.events import Notice, Progress
from studio.core.generators import run_to_end
from studio.data.doctor.findings import list_findings
from studio.data.importing.importing import ImportOptions, SpritesImported
from studio.data.labels import lookup
from studio.data.labels.table import MAX_NUMBERS, LabelsTable, read_table
from studio.data.sources.idx import IdxSource
from tests.data.making import events_of, frame, imported, png_of, reasons, sprite, write, write_sheet, zipped

FILES = ("a.png", "b.png", "sub/c.png", "sub/d.png")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(FILES):
        write(tmp_path / "set" / name, sprite(number))
    return tmp_path / "set"


def with_labels(folder: Path, text: str | bytes) -> SpritesImported:
    (folder / "labels.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    return imported(folder)


def classes(event: SpritesImported) -> dict[str, str]:
    sprites = event.sprites
    return {name: sprites.class_names[label] for name, label in zip(sprites.names, sprites.labels, strict=True)}


def numbers(event: SpritesImported) -> dict[str, list[float | None]]:
    rows = [[None if np.isnan(n) else round(float(n), 6) for n in row] for row in event.sprites.targets]
    return dict(zip(event.sprites.names, rows, strict=True))


def said(event: SpritesImported) -> list[str]:
    return [item.reason for item in event.notes if item.group == "labels"]


def table_of(text: str) -> LabelsTable:
    return run_to_end(read_table(text.encode(), lambda name: name.endswith(".png")))


def test_classes_take_precedence_over_folders(folder: Path) -> None:
    event = with_labels(folder, "file,class\na.png,sword\nsub/c.png,gem stone\nsub\\d.png,\n")
    assert classes(event) == {"a.png": "sword", "b.png": "set", "sub/c.png": "gem stone", "sub/d.png": "sub"}
    assert event.sprites.targets.shape == (4, 0) and event.sprites.target_names == ()
    assert said(event) == ["no row for b.png"] and not event.quarantine


def test_numbers_become_targets(folder: Path) -> None:
    event = with_labels(folder, "file,visible,price\na.png,0.5,1e2\nb.png,,NaN\n./sub//c.png,-3,.25\n")
    assert event.sprites.target_names == ("visible", "price")
    assert numbers(event)["a.png"] == [0.5, 100] and numbers(event)["sub/c.png"] == [-3, 0.25]
    assert numbers(event)["b.png"] == numbers(event)["sub/d.png"] == [None, None]
    assert event.sprites.class_names == ("set", "sub")
    write(folder / "sprite.png", sprite(30))  # whose name heads the column of files
    event = with_labels(folder, "sprite,price\nsprite,3\na,4\n")
    assert event.sprites.target_names == ("price",) and numbers(event)["sprite.png"] == [3]


@pytest.mark.parametrize(
    ("text", "names", "value"),
    [
        ("a.png,0.5\nb.png,2\n", ("value",), 0.5),
        ("a.png,0.5,1\nb.png,2,3\n", ("value 1", "value 2"), 0.5),
        ("\ufefffile;visible\r\n\r\na.png;0,5\r\nb.png;1,25", ("visible",), 0.5),
        ("a.png\t0,5\nb.png\t7\n", ("value",), 0.5),
        ('"name","a ""good"" price"\n"a.png","0.5"\n', ('a "good" price',), 0.5),
        ("whatever,visible,visible\na.png,0.5,1\n", ("visible", "visible 2"), 0.5),
        ("sprite,price,\na.png,0.5,\nb.png,1,,\n", ("price",), 0.5),
        ("file,2024\na.png,0.5\n", ("2024",), 0.5),
        ("a,0.5\nb,1\n", ("value",), 0.5),
        ("a , 0.5\rb,1\r", ("value",), 0.5),  # without suffixes; lines end as on old Macs
        ("a.png,\nb.png,1\nsub/c.png,0.5", ("value",), None),
    ],
)
def test_common_table_formats(folder: Path, text: str, names: tuple[str, ...], value: float | None) -> None:
    event = with_labels(folder, text)
    assert event.sprites.target_names == names and numbers(event)["a.png"][0] == value
    assert all(reason.startswith("no row for") for reason in said(event))


def test_a_column_of_classes_beside_numbers(folder: Path) -> None:
    event = with_labels(folder, "file,price,label,rarity\na.png,3,1,0.5\nb.png,4,2,\n")
    assert event.sprites.target_names == ("price", "rarity") and numbers(event)["b.png"] == [4, None]
    assert classes(event)["a.png"] == "1" and classes(event)["b.png"] == "2"
    event = with_labels(folder, "a.png,sword,3,ann\nb.png,gem,4,bob\n")
    assert classes(event)["b.png"] == "gem" and event.sprites.target_names == ("value",)
    assert "line 1: column 4 holds texts and is not read: it has no heading" in said(event)


def test_invalid_lines_are_reported_and_skipped(folder: Path) -> None:
    lines = [
        "file,price,rarity", "a.png,1,2", "b.png,1", "b.png,1,2,3", "none.png,1,2", "../a.png,1,2", "/etc/a.png,1,2",
        "C:\\a.png,1,2", "a.png,7,7", ",1,2", "sub/c.png,inf,2", "sub/d.png,cheap,1e31", 'b.png,"1",x"y', "b.png,5,6",
    ]  # fmt: skip
    event = with_labels(folder, "\n".join(lines))
    assert said(event) == [
        "line 3: 2 columns instead of 3",
        "line 4: 4 columns instead of 3",
        "line 5: no file 'none.png' found",
        "line 6: '../a.png' leads out of the folder of this table",
        "line 7: '/etc/a.png' is an absolute path: write the path relative to the folder of this table",
        "line 8: 'C:\\\\a.png' is an absolute path: write the path relative to the folder of this table",
        "line 9: 'a.png' already has a row: line 2",
        "line 10: no file name",
        "line 11: 'inf' is too large and counts as missing",
        "line 12: '1e31' is too large and counts as missing",
        "line 12: 'cheap' is not a number and counts as missing",
        "line 13: 'x\"y' is not a number and counts as missing",
        "line 14: 'b.png' already has a row: line 13",
    ]
    assert numbers(event) == {"a.png": [1, 2], "b.png": [1, None], "sub/c.png": [None, 2], "sub/d.png": [None] * 2}
    assert all(item.path == folder / "labels.csv" for item in event.notes)
    event = with_labels(folder, 'a.png,1\n"b.png"x,2\nsub/c.png,3\nsub/d.png,"4\n')
    assert numbers(event)["a.png"] == [1] and numbers(event)["sub/c.png"] == [3]
    sentence = "a quotation mark is not closed, or stands in the middle of a text"
    assert said(event)[:2] == [f"line 2: {sentence}", f"line 4: {sentence}"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty: the file has no text"),
        (b"\xef\xbb\xbf\r\n \n", "empty: the file has no text"),
        ("file,price\na.png,1\nü.png,2\n".encode("latin-1"), "line 3 is not UTF-8 text"),
        ("a.png,1".encode("utf-16"), "line 1 is not UTF-8 text"),
        (b"a.png,1\0\n", "not a text"),
        (bytes(range(1, 256)) * 40, "not UTF-8 text"),
        (b"a.png\nb.png\n", "only one column"),
        (b"a.png,\nb.png,\n", "only one column"),
        (b'"a.png,1\nb.png,2\n', "no readable line: line 1: a quotation mark"),
        (("a.png" + ",1" * (MAX_NUMBERS + 1)).encode(), "too many columns of numbers: 65, at most 64"),
    ],
)
def test_files_without_a_table_are_left_out(folder: Path, data: bytes, reason: str) -> None:
    event = with_labels(folder, data)
    assert reason in reasons(event)["labels.csv"] and len(event.sprites) == 4 and not said(event)


def test_tables_of_several_folders(folder: Path) -> None:
    (folder / "sub" / "Labels.CSV").write_text("file,price,kind of\nc.png,5,1\n")
    event = with_labels(folder, "file,rarity,price\na.png,1,10\nsub/c.png,2,20\nsub/d.png,3,30\n")
    assert event.sprites.target_names == ("rarity", "price", "kind of")
    assert numbers(event)["sub/c.png"] == [None, 5, 1] and numbers(event)["sub/d.png"] == [3, 30, None]
    assert said(event) == ["line 3: 'sub/c.png' has a row in a labels.csv nearer to it", "no row for b.png"]


def test_sheets_and_their_sprites(folder: Path) -> None:
    rgba = np.concatenate([sprite(20), sprite(21), sprite(22)], axis=1)
    write_sheet(folder / "potions.png", rgba, [frame(str(n), 8 * n, 0, 8, 8) for n in range(3)])
    event = with_labels(folder, "potions.png,potion\npotions#1,ruby\npotions.png#2,opal\npotions.png#9,x\na,blade\n")
    assert classes(event)["potions.png#0"] == "potion" and classes(event)["a.png"] == "blade"
    assert classes(event)["potions.png#1"] == "ruby" and classes(event)["potions.png#2"] == "opal"
    assert said(event)[0] == "line 4: no sprite 'potions.png#9' found"


def test_archives_by_themselves_and_in_folders(tmp_path: Path) -> None:
    pack = {f"pack/{name}": png_of(sprite(number)) for number, name in enumerate(FILES)}
    event = imported(zipped(tmp_path / "pack.zip", {**pack, "pack/labels.csv": b"a.png,1\nsub/c.png,2\n"}))
    assert numbers(event)["a.png"] == [1] and numbers(event)["sub/c.png"] == [2]
    zipped(tmp_path / "set" / "pack.zip", {**pack, "pack/sub/labels.csv": b"c.png,2\n"})
    event = with_labels(tmp_path / "set", "pack.zip/a.png,1\npack.zip/sub/c.png,3\n")
    assert numbers(event)["pack.zip/a.png"] == [1] and numbers(event)["pack.zip/sub/c.png"] == [2]
    bad = zipped(tmp_path / "bad.zip", {**pack, "pack/labels.csv": b"\xff\xfe"})
    assert "not UTF-8" in reasons(imported(bad))["labels.csv"]


def test_rows_for_files_that_were_not_dropped_are_ignored(folder: Path) -> None:
    (folder / "labels.csv").write_text("a.png,1\nb.png,2\n")
    assert imported(folder / "a.png").sprites.target_names == ()
    event = imported(folder / "a.png", folder / "labels.csv")
    assert numbers(event) == {"a.png": [1]} and said(event) == ["line 2: no file 'b.png' found"]
    other = write(folder.parent / "other" / "b.png", sprite(9))
    assert numbers(imported(other, folder / "labels.csv")) == {"b.png": [None]}
    (folder / "alone").mkdir()
    (folder / "alone" / "labels.csv").write_text("a.png,1\n")
    with pytest.raises(BadInputError, match="No images found"):
        imported(folder / "alone")


def test_names_with_accents_and_equal_folder_names(folder: Path) -> None:
    write(folder / "e\u0301pe\u0301e.png", sprite(7))
    write(folder / "twin.png", sprite(0))
    event = with_labels(folder, "a.png,1\n\u00e9p\u00e9e.png,2\ntwin.png,3\n")
    assert numbers(event)["\u00e9p\u00e9e.png"] == [2]
    assert reasons(event) == {"twin.png": "duplicate of a.png with other numbers"}


def test_idx_files_know_their_own_classes(tmp_path: Path) -> None:
    path = IdxSource().example(tmp_path)
    event = with_labels(tmp_path, f"file,class,price\n{path.name}#0,mine,4\n")
    assert set(classes(event).values()) == {"3", "7"} and [4] in numbers(event).values()


def test_a_changed_labels_file_changes_the_cache_entry(folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (folder / "labels.csv").write_text("a.png,1\nb.png,x\n")
    first, again = imported(folder, cache=cache), imported(folder, cache=cache)
    assert again.from_cache and again.sprites.fingerprint == first.sprites.fingerprint
    assert numbers(again) == numbers(first) and said(again) == said(first) and again.sprites.target_names == ("value",)
    (folder / "labels.csv").write_text("a.png,1\nb.png,22\n")
    changed = imported(folder, cache=cache)
    assert not changed.from_cache and numbers(changed)["b.png"] == [22]
    assert changed.sprites.fingerprint != first.sprites.fingerprint


@pytest.mark.slow
def test_many_lines_are_read_and_the_list_of_problems_is_limited() -> None:
    rows = 100_000
    found = table_of("file,class,x\n" + "".join(f"{n}.png,c{n % 7},{n}\n" for n in range(rows)) + "no\n" * 500)
    assert len(found.rows) == rows and found.rows["70000.png"] == 70_000
    assert found.numbers[:, 0].tolist() == list(range(rows)) and len(found.class_names) == 7
    sentences = list(found.problems.sentences())
    assert len(sentences) == 101 and sentences[-1] == "400 more lines can't be used"


def test_too_long_texts_are_skipped() -> None:
    found = table_of(f"a.png,{'x' * 300}\nb.png,sword\n{'y' * 200_000}.png,gem\n")
    assert found.class_names == ("sword",) and len(found.problems.lines) == 2


def test_the_search_for_labels_files_yields_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_PROGRESS_FILES", 10)
    for number in range(25):
        write(tmp_path / "set" / f"{number}.png", sprite(number))
    told = [event for event in events_of(tmp_path / "set") if isinstance(event, Progress)]
    assert [event.done for event in told if event.what == "files searched"] == [10, 20]


@pytest.mark.parametrize(
    ("delimiter", "cells", "read", "misfits"),
    [
        (";", ("1.234", "0,5"), (1234, 0.5), ()),  # a comma in one cell decides for all
        (";", ("1.234", "0.5"), (1.234, 0.5), ()),
        (";", ("1,234", "0.5"), (1234, 0.5), ()),
        (";", ("1.234,5", "2.000"), (1234.5, 2000), ()),
        (";", ("1 234,5", "1\u202f000"), (1234.5, 1000), ()),
        ("\t", ("1'234.5", "1,234,567"), (1234.5, 1234567), ()),
        (",", ('"1,234"', "0.5"), (1234, 0.5), ()),
        (",", ('"0,31"', '"1,72"'), (0.31, 1.72), ()),
        (";", ("0,5", "0,7", "0.9"), (0.5, 0.7, None), ("line 4: '0.9' is not a number with a decimal comma",)),
        (";", ("0.5", "0.7", "0,9"), (0.5, 0.7, None), ("line 4: '0,9' is not a number with a decimal point",)),
        (",", ("0.5", "1.2.3"), (0.5, None), ("line 3: '1.2.3' is not a number",)),
    ],
)
def test_a_whole_column_decides_the_decimal_mark(
    delimiter: str, cells: tuple[str, ...], read: tuple[float | None, ...], misfits: tuple[str, ...]
) -> None:
    lines = [f"file{delimiter}price", *(f"{number}.png{delimiter}{cell}" for number, cell in enumerate(cells))]
    table = table_of("\n".join(lines))
    assert [None if np.isnan(number) else number for number in table.numbers[:, 0]] == pytest.approx(list(read))
    said = list(table.problems.sentences())
    assert len(said) == len(misfits) and all(map(str.startswith, said, misfits)) and not table.ambiguous


def test_the_last_of_many_lines_can_decide_the_decimal_mark() -> None:
    lines = ["file;price", *(f"{number}.png;1.{number % 1000:03}" for number in range(3000)), "last.png;0,5"]
    assert table_of("\n".join(lines)).numbers[7, 0] == 1007


def test_each_column_has_its_own_mark() -> None:
    table = table_of("file;a;b\nx.png;1.5;1,5\ny.png;2.25;2,25")
    assert table.numbers.tolist() == [[1.5, 1.5], [2.25, 2.25]]


def test_an_undecided_column_takes_the_mark_of_the_other_columns() -> None:
    table = table_of("file;price;weight\nx.png;1.250;0,5\ny.png;2.125;0,7")
    assert table.numbers[:, 0].tolist() == [1250, 2125] and len(table.ambiguous) == 1


def test_ambiguous_numbers_are_reported_with_fixes(folder: Path) -> None:
    (folder / "labels.csv").write_text("file;price\na.png;1,234\nb.png;5,678\nsub/c.png;9\n")
    *events, event = events_of(folder)
    assert isinstance(event, SpritesImported) and numbers(event)["a.png"] == [1.234]
    sentence = "the numbers of 'price' fit two notations: 1,234 was read as 1.234, but may mean 1234"
    assert any(isinstance(each, Notice) and each.title == f"labels.csv: {sentence}." for each in events)
    (finding,) = [each for each in list_findings(event, ImportOptions()) if each.group == "ambiguous numbers"]
    assert [item.reason for item in finding.items] == [sentence]
    assert {"decimal_mark": "point"} in [fix.changes for fix in finding.fixes]
    answered = imported(folder, decimal_mark="point")
    assert numbers(answered)["b.png"] == [5678] and "ambiguous numbers" not in answered.note_groups


def test_metadata_csv_is_read_like_labels_csv(folder: Path) -> None:
    captions = "text,file_name,rarity\nA red gem,a.png,0.5\nA sword,sub/c.png,2\n"
    (folder / "metadata.csv").write_text(captions)
    event = imported(folder)
    assert event.sprites.target_names == ("rarity",) and numbers(event)["sub/c.png"] == [2]
    assert set(classes(event).values()) == {"set", "sub"}  # captions are no classes
    assert said(event) == [
        "line 1: column 1 (text) holds texts and is not read: its texts hardly repeat",
        "no row for b.png, sub/d.png",
    ]
    event = with_labels(folder, "file,class\na.png,gem\n")
    assert classes(event)["a.png"] == "gem" and numbers(event)["sub/c.png"] == [2]
    assert "line 2: 'a.png' has a row in a labels.csv beside this table" in said(event)


def test_unrelated_metadata_csv_is_ignored(folder: Path) -> None:
    (folder / "metadata.csv").write_text("key,value\nauthor,me\nyear,2026\n")
    event = imported(folder)
    assert not event.notes and not event.quarantine and len(event.sprites) == 4


def test_the_separator_line_for_excel_is_skipped(folder: Path) -> None:
    event = with_labels(folder, "\ufeffsep=;\r\nfile;class;price\r\na.png;sword;1,5\r\nno.png;gem;2,5\r\n")
    assert classes(event)["a.png"] == "sword" and numbers(event)["a.png"] == [1.5]
    assert event.sprites.target_names == ("price",)
    assert said(event)[0] == "line 4: no file 'no.png' found"


def test_row_numbers_of_pandas_are_ignored() -> None:
    table = table_of(",file,price\n0,a.png,5\n1,b.png,6\n")
    assert table.number_names == ("price",) and table.numbers[:, 0].tolist() == [5, 6]


def test_a_unique_last_name_of_a_frame_finds_its_row(folder: Path) -> None:
    names = ("gems/ruby", "gems/1", "coins/1")
    rgba = np.concatenate([sprite(20 + number) for number in range(3)], axis=1)
    write_sheet(folder / "items.png", rgba, [frame(name, 8 * n, 0, 8, 8) for n, name in enumerate(names)])
    event = with_labels(folder, "items.png#ruby,5\nitems.png#1,6\nitems#coins/1,7\n")
    numbers_of_items = {name: value for name, value in numbers(event).items() if name.startswith("items")}
    assert numbers_of_items == {"items.png#gems/ruby": [5], "items.png#gems/1": [None], "items.png#coins/1": [7]}
    assert said(event)[0] == "line 2: no sprite 'items.png#1' found"
