"""Each failure of uv, of the network and of the disk becomes one sentence."""

from __future__ import annotations

import pytest

from studio.installing.failures import explain

_FETCH = "error: Request failed after 3 retries in 6.1s\n  cause: Failed to fetch: https://index.invalid/simple/rich/\n"


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        (_FETCH + "  cause: dns error\n", "The connection to index.invalid failed: check the network and try again."),
        (_FETCH + "  cause: tcp connect error\n  cause: Connection refused (os error 111)\n", "The connection to"),
        (_FETCH + "  cause: HTTP status server error (503)\n", "The connection to index.invalid failed"),
        (_FETCH + "  cause: tunnel error: proxy authorization required\n", "The proxy asks for a name and a password"),
        (
            _FETCH + "  cause: tunnel error: failed to create underlying connection\n  cause: tcp connect error",
            "The proxy does",
        ),
        (_FETCH + "  cause: invalid peer certificate: UnknownIssuer\n", "The connection is not trusted"),
        (
            "error: HTTP status client error (403 Forbidden)\n",
            "The package index or a firewall refused the download (403",
        ),
        (
            "error: Failed to write\n  cause: No space left on device (os error 28)\n",
            "The disk is full: free some space",
        ),
        ("error: Hash mismatch for `torch==2.15.0`\n", "A fetched file is damaged (torch==2.15.0): try again."),
        (
            "cause: pyside6-essentials==6.11.3 has no wheels with a matching platform tag (e.g., `manylinux_2_28`)",
            "A package has no wheel for this system: Linux needs glibc 2.34",
        ),
        (
            "ImportError: libEGL.so.1: cannot open shared object file: No such file or directory",
            "The system lacks the library libEGL.so.1: install it and try again.",
        ),
        ("error: failed to open `/x`: Permission denied (os error 13)", "A file can't be written"),
        ("Using Python 3.11\nerror: Something new\n  cause: of it", "It failed: Something new"),
        ("Traceback:\n  File x\nValueError: of torch\n", "It failed: ValueError: of torch"),
        ("", "It failed."),
    ],
)
def test_sentence(output: str, sentence: str) -> None:
    said = explain(output, "It failed")
    assert said.startswith(sentence)
    assert "\n" not in said and len(said) < 160
