"""A page in headless Chromium, driven as a user would by WebDriver (W3C), in a process of its own: it talks to a port.

    python -m tests.exports.browser PAGE < actions.json

Actions are pairs in a list: ["click", selector], ["until", state of the page], ["script", what to return] and
["shot", PNG]. Prints what each gave as a list.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_PATIENCE_S = 90
_STARTED = re.compile(r"started successfully on port (\d+)")  # what chromedriver prints
# Answers when the page gets into a state, which it may be in already.
_UNTIL = """
const [state, answer] = arguments, body = document.body, look = () => body.dataset.state === state && answer();
new MutationObserver(look).observe(body, { attributeFilter: ["data-state"] });
look();
"""
_OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,900"]


def acted(page: Path, actions: Sequence[tuple[str, str]]) -> list[Any]:
    """What each action on a page gave."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.exports.browser", str(page)], input=json.dumps(list(actions)),
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


class Browser:
    """One window. Commands are those of WebDriver."""

    def __init__(self, address: str) -> None:
        self._address = address
        options = {"goog:chromeOptions": {"args": _OPTIONS}, "timeouts": {"script": 1000 * _PATIENCE_S}}
        session = self.command("POST", "/session", {"capabilities": {"alwaysMatch": options}})
        self._address = f"{address}/session/{session['sessionId']}"

    def command(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._address + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
            return json.load(answer)["value"]

    def script(self, code: str) -> Any:
        return self.command("POST", "/execute/sync", {"script": f"return {code}", "args": []})

    def click(self, selector: str) -> None:
        element = self.command("POST", "/element", {"using": "css selector", "value": selector})
        self.command("POST", f"/element/{next(iter(element.values()))}/click", {})

    def until(self, state: str) -> None:
        self.command("POST", "/execute/async", {"script": _UNTIL, "args": [state]})

    def shot(self, path: str) -> None:
        Path(path).write_bytes(base64.b64decode(self.command("GET", "/screenshot")))


@contextlib.contextmanager
def opened(page: Path) -> Iterator[Browser]:
    """A page that was opened from the disk."""
    with subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, encoding="utf-8") as driver:
        try:
            assert driver.stdout is not None
            ports = (_STARTED.search(line) for line in driver.stdout)
            browser = Browser(f"http://127.0.0.1:{next(port[1] for port in ports if port)}")
            browser.command("POST", "/url", {"url": page.as_uri()})
            yield browser
            browser.command("DELETE", "")
        finally:
            driver.terminate()


if __name__ == "__main__":
    with opened(Path(sys.argv[1]).absolute()) as window:
        print(json.dumps([getattr(window, kind)(argument) for kind, argument in json.load(sys.stdin)]))  # noqa: T201
