"""One sentence for a failed installation, from the output of uv or of the self-test."""

from __future__ import annotations

import re

_KEPT = "What has been fetched is kept."
# The first pattern found in the output decides. Its group is {0} of the sentence, the first URL gives {host}.
_SENTENCES = (
    (r"No space left on device|os error 28\b|os error 112\b|Disk quota exceeded",
     "The disk is full: free some space and try again."),
    (r"proxy authorization required|407 Proxy",
     "The proxy asks for a name and a password: put them into HTTPS_PROXY and try again."),
    (r"tunnel error", f"The proxy does not answer: check HTTPS_PROXY and try again. {_KEPT}"),
    (r"invalid peer certificate|UnknownIssuer|certificate verify failed|CertificateRequired",
     "The connection is not trusted: a firewall replaces the certificate. Ask for its certificate and install it."),
    (r"\b(401 Unauthorized|403 Forbidden)", "The package index or a firewall refused the download ({0})."),
    (r"dns error|failed to lookup address|tcp connect error|Network is unreachable|Connection re(?:set|fused)"
     r"|operation timed out|connection closed|error sending request|error decoding response body|unexpected end of file"
     r"|HTTP status (?:server error|code 5)|Request failed after",
     f"The connection to {{host}} failed: check the network and try again. {_KEPT}"),
    (r"Hash mismatch for `([^`]+)`|hash mismatch", "A fetched file is damaged ({0}): try again."),
    (r"no wheels with a matching (?:platform|Python)|no wheel.{0,40}compatible|has no .{0,20}wheels? .{0,40}platform",
     "A package has no wheel for this system: Linux needs glibc 2.34 (Debian 12, Ubuntu 22.04) or newer."),
    (r"ImportError: (\S+\.so[.\d]*): cannot open shared object file",
     "The system lacks the library {0}: install it and try again."),
    (r"Permission denied|os error 13\b", "A file can't be written: check the permissions of the folder."),
)  # fmt: skip


def explain(output: str, otherwise: str) -> str:
    """Return a sentence that says what went wrong and what to do; otherwise plus the last error line."""
    for pattern, sentence in _SENTENCES:
        if found := re.search(pattern, output):
            detail = next(filter(None, found.groups()), "") if found.groups() else ""
            host = re.search(r"\bhttps?://(?:[^@/\s]*@)?([^/:\s`]+)", output)
            return sentence.format(detail, host=host[1] if host else "the package index").replace(" ()", "")
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"error:|×|\w*(Error|Exception)\b", line)]
    last = (errors or lines or [""])[-1]
    return f"{otherwise}: {last.removeprefix('error:').strip()}" if last else f"{otherwise}."
