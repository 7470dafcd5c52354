"""Known but unsupported kinds of files are named and counted."""

from __future__ import annotations

from pathlib import Path

from tests.data.making import imported, reasons, sprite, write

UNREAD = {
    "a.pxo": "a Pixelorama project",
    "a.pdn": "a paint.net picture",
    "a.iff": "an IFF picture",
    "a.LBM": "an IFF picture",
    "a.jxl": "a JPEG XL picture",
    "a.ktx": "a KTX texture",
    "a.ktx2": "a KTX texture",
    "a.procreate": "a Procreate drawing",
    "a.psd": "a Photoshop file",
    "a.kra": "a Krita file",
    "a.rar": "an unsupported archive",
    "a.7z": "an unsupported archive",
    "a.tar": "an unsupported archive",
    "a.tar.gz": "an unsupported archive",
    "a.tgz": "an unsupported archive",
}


def test_unsupported_files_are_reported_with_advice(tmp_path: Path) -> None:
    write(tmp_path / "good.png", sprite(1))
    for name in (*UNREAD, "notes.gz", "notes.txt", "sound.ogg"):
        (tmp_path / name).write_bytes(b"something")
    told = reasons(imported(tmp_path), "unsupported")
    assert told.keys() == UNREAD.keys()
    for name, words in UNREAD.items():
        assert told[name].startswith(words)
        assert told[name].endswith("unpack it or use zip" if words == "an unsupported archive" else "save it as PNG")
