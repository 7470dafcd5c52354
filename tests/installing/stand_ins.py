"""Small wheels that stand in for PyTorch, Qt and the studio, and an index of them that cuts connections."""

from __future__ import annotations

import hashlib
import http.server
import os
import shutil
import socketserver
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from studio.installing.payload import Payload
from studio.installing.torch_builds import Build

BUILD = Build("cu132", "NVIDIA", 1000, 3000, on_index=True)
UV = Path(sys.executable).with_name("uv")
_MODULES: dict[tuple[str, str], dict[str, str | bytes]] = {
    ("torchvision", "0.29.2"): {"torchvision.py": ""},
    ("pyside6_essentials", "6.11.3"): {f"PySide6/{name}.py": "" for name in ("__init__", "QtSvg", "QtWidgets")},
}
_TORCH = (
    "__version__ = '2.15.0'\nclass ones:\n    def __init__(self, n): self.n = n\n    def sum(self): return self.n\n"
)
_STUDIO = {
    "studio/__init__.py": "",
    "studio/__main__.py": "import sys\nprint('studio', *sys.argv[1:])\n",
    "studio/app/__init__.py": "",
    "studio/app/launch.py": "",
}


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, str | bytes]) -> Path:
    """Write a wheel with these files."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    members = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        for member, content in members.items():
            wheel.writestr(member, content)
        wheel.writestr(f"{info}/RECORD", "".join(f"{member},,\n" for member in members) + f"{info}/RECORD,,\n")
    return path


def make_payload(folder: Path, wheels: Path, *, version: str = "9.0", works: bool = True) -> Payload:
    """Write an installer's files, and the wheels that its lock names. works: whether the studio passes its test."""
    # Large enough to be cut in the middle.
    packages = _MODULES | {("torch", "2.15.0"): {"torch/__init__.py": _TORCH, "torch/library": os.urandom(200_000)}}
    lock = []
    for (name, number), files in packages.items():
        path = wheels / f"{name}-{number}-py3-none-any.whl"
        path = path if path.exists() else make_wheel(wheels, name, number, files)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        lock.append(f"{name.replace('_', '-')}=={number} \\\n    --hash=sha256:{digest}\n")
    studio = _STUDIO if works else {**_STUDIO, "studio/app/launch.py": "raise ImportError('broken build')"}
    make_wheel(folder, "sprite_training_studio", version, studio)
    (folder / "requirements.lock").write_text("".join(lock))
    (folder / "uv").symlink_to(UV)
    shutil.copyfile(Path(__file__).parents[2] / "assets/installers/start", folder / "start")
    return Payload(folder)


class Index(socketserver.ThreadingTCPServer):
    """A package index on this machine. cut: file names whose next downloads break off; requests: files asked for."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, wheels: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wheels = wheels
        self.cut: Counter[str] = Counter()
        self.requests: Counter[str] = Counter()
        self.stalling = threading.Event()

    @property
    def url(self) -> str:
        """The address for UV_DEFAULT_INDEX."""
        return f"http://127.0.0.1:{self.server_address[1]}/simple"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Index

    def log_message(self, format: str, *values: object) -> None:  # noqa: A002
        """Print nothing."""

    def do_GET(self) -> None:
        name = self.path.strip("/").rpartition("/")[2]
        file = self.server.wheels / name
        if not file.is_file():
            found = self.server.wheels.glob(f"{name.replace('-', '_')}-*.whl")
            links = "".join(f'<a href="/files/{path.name}">{path.name}</a>' for path in found)
            self._send(f"<html><body>{links}</body></html>".encode(), "text/html")
            return
        self.server.requests[name.partition("-")[0]] += 1
        content = file.read_bytes()
        if self.server.cut[name.partition("-")[0]] > 0:
            self.server.cut[name.partition("-")[0]] -= 1
            self._send(content, "application/octet-stream", half=True)
        else:
            self._send(content, "application/octet-stream")

    def _send(self, content: bytes, kind: str, *, half: bool = False) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if half else content)
        if half and self.server.stalling.is_set():
            self.wfile.flush()
            while self.server.stalling.wait(0.05) and self.server.stalling.is_set():
                threading.Event().wait(0.05)


@contextmanager
def index_of(wheels: Path) -> Iterator[Index]:
    """Serve the wheels in a folder."""
    with Index(wheels) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.stalling.clear()
            server.shutdown()
            thread.join()
