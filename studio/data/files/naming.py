"""Names from disks and files, made fit to be shown."""

from __future__ import annotations

from studio.core.names import nfc

_OF_SYSTEMS = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini"})
_OTHER_FOLDERS = frozenset(
    {
        "@eadir", "#recycle", "#snapshot",  # Synology: thumbnails, trash, snapshots
        "@recycle", "@recently-snapshot",  # QNAP
        "$recycle.bin", "system volume information", "found.000",  # Windows
        "__macosx", "network trash folder", "temporary items",  # macOS
        "lost+found",  # Linux
        "__pycache__", "node_modules",  # editors and build tools
    }
)  # fmt: skip
_BACKUPS = ("~", ".bak", ".tmp", ".temp", ".orig", ".swp", ".part", ".crdownload")


def ignored(name: str) -> bool:
    """Return whether the import skips a file or folder without a message: hidden files and system files."""
    return name.startswith(".") or name.lower() in _OF_SYSTEMS


def made_by_other_program(name: str, *, is_folder: bool) -> bool:
    """Return whether the name means a folder made by a NAS, a system or an editor, or a backup file."""
    name = name.lower()
    return name in _OTHER_FOLDERS or (not is_folder and name.endswith(_BACKUPS))


def is_archive(name: str) -> bool:
    """Whether files of this name are zip archives."""
    return name.lower().endswith(".zip")


def folded(name: str) -> str:
    """Return a file name in a form for comparisons: case-folded, in composed Unicode."""
    return nfc(name).casefold()


def escape_unprintable(text: str) -> str:
    """Return `text` in composed Unicode with undecodable bytes, surrogates and control characters escaped."""
    text = nfc(text)
    if text.isprintable():
        return text
    return "".join(_escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    code = ord(letter)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8, as Python keeps it in a file name
        return f"\\x{code - 0xDC00:02x}"
    if code < 32 or 0x7F <= code < 0xA0:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if 0xD800 <= code <= 0xDFFF or code in _BREAKS_TURNS_UNSEEN else letter


# Line breaks of Unicode, marks that turn the direction of writing and so can disguise a name, and marks that nobody
# sees. The joiners are not seen either, but emoji and Persian need them.
_BREAKS_TURNS_UNSEEN = frozenset(
    {0xAD, 0x200B, 0x2028, 0x2029, 0x2060, 0xFEFF, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
)
