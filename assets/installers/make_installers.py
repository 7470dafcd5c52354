"""Build the installers into dist/: .deb and .run, a .exe for Windows, an app for macOS; or an offline bundle for Linux.

usage: make_installers.py [--bundle] [--torch BUILD] [--out FOLDER]

All hold the studio's wheel, requirements.lock, uv and the launcher's script; --bundle adds all wheels for the running
Python. The same commit and the same uv.lock give the same bytes: times come from SOURCE_DATE_EPOCH or the last commit.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import urllib.parse
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import packaging.tags
import packaging.utils
import third_party
from macos_app import make_app
from windows_setup import add_files, make_setup

from studio.installing.payload import Payload, locked_torch, python_version, without_torch
from studio.installing.torch_builds import Build, builds

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ID = "studio.spritetraining.SpriteTrainingStudio"
_NAME = "sprite-training-studio"
_OPT = f"opt/{_NAME}"
# Of uv's wheels: the platform tag and the file in the wheel.
UV_WHEELS = {
    "linux": ("manylinux_2_17_x86_64", "uv"),
    "windows": ("win_amd64", "uv.exe"),
    "macos": ("macosx_11_0_arm64", "uv"),
}
# System libraries for Qt on a desktop, without those inside PySide6's wheels.
QT_LIBRARIES = (
    "libegl1", "libgl1", "libxkbcommon0", "libdbus-1-3", "libfontconfig1", "libglib2.0-0", "fonts-dejavu-core",
    "libxcb-cursor0", "libxcb-icccm4", "libxcb-image0", "libxcb-keysyms1", "libxcb-randr0", "libxcb-render-util0",
    "libxcb-shape0", "libxcb-sync1", "libxcb-xfixes0", "libxcb-xkb1", "libxkbcommon-x11-0", "libx11-xcb1",
    "libwayland-client0", "libwayland-cursor0", "libwayland-egl1",
)  # fmt: skip
_ACTIONS = """Actions=setup;repair;

[Desktop Action setup]
Name=Change PyTorch build
Exec=sprite-training-studio --setup

[Desktop Action repair]
Name=Repair
Exec=sprite-training-studio --repair
"""


def epoch() -> int:
    """Return the time for all files: SOURCE_DATE_EPOCH, else the last commit's, else 2026-01-01."""
    if chosen := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(chosen)
    command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return int(done.stdout or 1767225600)


def build_wheel(folder: Path) -> Path:
    """Build the studio's wheel."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    variables = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch())}
    subprocess.run(command, cwd=ROOT, env=variables, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def fetch_uv(system: str, folder: Path) -> Path:
    """Fetch uv's program and licences for 'linux', 'windows' or 'macos', with the hashes of uv.lock."""
    tag, name = UV_WHEELS[system]
    lock = HERE / "uv.lock"
    only = ["--no-deps", "--only-binary", ":all:", "--platform", tag, "--require-hashes"]
    _pip_download([*only, "--requirement", str(lock)], folder / "wheel")
    with zipfile.ZipFile(next((folder / "wheel").glob("uv-*.whl"))) as wheel:
        for member in wheel.namelist():
            kind, last = member.split("/")[-2:-1], member.rpartition("/")[2]
            if (kind == ["scripts"] and last == name) or "/licenses/" in member:
                (folder / last).write_bytes(wheel.read(member))
    return folder / name


def fill_payload(folder: Path, wheel: Path, uv: Path, *scripts: Path) -> None:
    """Copy the files that every installer carries, and scripts."""
    folder.mkdir(parents=True)
    for source in (wheel, uv, ROOT / "requirements.lock", *scripts, *uv.parent.glob("LICENSE*")):
        name = f"uv-{source.name}" if source.name.startswith("LICENSE") else source.name
        shutil.copyfile(source, folder / name)
    shutil.copyfile(ROOT / "assets/icons/app.png", folder / f"{ID}.png")


def make_deb(wheel: Path, uv: Path, out: Path) -> Path:
    """Build the Debian package for amd64."""
    version = Payload(wheel.parent).version
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "tree"
        fill_payload(tree / _OPT, wheel, uv, HERE / "start")
        share = tree / "usr" / "share"
        files = {
            share / "applications" / f"{ID}.desktop": desktop_entry().encode(),
            share / "metainfo" / f"{ID}.metainfo.xml": (ROOT / f"assets/desktop/{ID}.metainfo.xml").read_bytes(),
            share / "icons/hicolor/scalable/apps" / f"{ID}.svg": (ROOT / "assets/icons/app.svg").read_bytes(),
            share / "icons/hicolor/256x256/apps" / f"{ID}.png": (ROOT / "assets/icons/app.png").read_bytes(),
            share / "doc" / _NAME / "copyright": (ROOT / "LICENSE").read_bytes(),
        }
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        (tree / "usr/bin").mkdir()
        for command in (_NAME, "studio"):
            (tree / "usr/bin" / command).symlink_to(f"/{_OPT}/start")
        size_kb = sum(-(-path.stat().st_size // 1024) for path in tree.rglob("*") if path.is_file())
        values = {"VERSION": version, "ARCHITECTURE": "amd64", "INSTALLED_KB": str(size_kb)}
        values["QT_LIBRARIES"] = ", ".join(QT_LIBRARIES)
        for source in sorted((HERE / "debian").iterdir()):
            target = tree / "DEBIAN" / source.name
            target.parent.mkdir(exist_ok=True)
            target.write_text(_replaced(source.read_text(encoding="utf-8"), values), encoding="utf-8")
        _normalise(tree)
        path = out / f"{_NAME}_{version}_amd64.deb"
        pack = ["dpkg-deb", "--root-owner-group", "--threads-max=1", "-Zxz", "--build", str(tree), str(path)]
        subprocess.run(pack, check=True, capture_output=True, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch())})
    return path


def make_run(wheel: Path, uv: Path, out: Path, bundle: Path | None = None) -> Path:
    """Build the self-extracting installer: a script followed by a tar archive. bundle: wheels/ and bundle.json."""
    version, suffix = Payload(wheel.parent).version, ""
    with tempfile.TemporaryDirectory(dir=out) as name:
        folder = Path(name) / "payload"
        fill_payload(folder, wheel, uv, HERE / "start")
        (folder / f"{ID}.desktop").write_text(desktop_entry(), encoding="utf-8")
        shutil.copyfile(ROOT / "assets/icons/app.svg", folder / f"{ID}.svg")
        if bundle is not None:
            facts = json.loads((bundle / "bundle.json").read_bytes())
            suffix = f"-offline-{facts['build']}-python{facts['python']}"
            for source in sorted(bundle.iterdir()):
                source.rename(folder / source.name)
        archive = Path(name) / "payload.tar"
        # Wheels are compressed already.
        with archive.open("wb") as raw, raw if bundle else _gzip(raw) as file:
            _write_tar(folder, file)
        path = out / f"{_NAME}-{version}-{platform.machine()}{suffix}.run"
        with path.open("wb") as file, archive.open("rb") as payload:
            file.write(_run_header(version, archive.stat().st_size, folder, "" if bundle else "-z"))
            shutil.copyfileobj(payload, file, 1 << 20)
        path.chmod(0o755)
    return path


def make_others(wheel: Path, work: Path, out: Path) -> list[Path]:
    """Build the app for macOS, and the installer for Windows if makensis is there."""
    version, made = Payload(wheel.parent).version, []
    for system in ("macos", "windows"):
        if system == "windows" and not shutil.which("makensis"):
            sys.stdout.write("No installer for Windows: makensis is missing; on Debian: sudo apt install nsis\n")
            continue
        (work / system).mkdir()
        payload = work / system / "payload"
        fill_payload(payload, wheel, fetch_uv(system, work / system))
        if system == "macos":
            made.append(make_app(payload, version, out, epoch()))
        else:
            add_files(payload)
            _normalise(payload)
            made.append(make_setup(payload, version, out, epoch()))
    return made


def fetch_bundle(build: Build, folder: Path) -> None:
    """Fetch the lock's wheels for the running Python. uv knows PyTorch's indexes."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    torch = locked_torch(lock) if build.torch == "torch" else build.torch
    text = lock if build.on_index else f"{without_torch(lock)}{torch}\ntorchvision\n"
    (folder / "packages.lock").write_text(text, encoding="utf-8")
    options = [] if build.on_index else ["--torch-backend", build.name]
    options += ["--no-config", "--quiet", "--generate-hashes", "--python-version", python_version()]
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "compile", *options, "--output-file", "pylock.toml"]
    subprocess.run([*uv, "packages.lock"], cwd=folder, check=True)
    packages = tomllib.loads((folder / "pylock.toml").read_text(encoding="utf-8"))["packages"]
    links = [f"{package['name']} @ {best_wheel(package['wheels'])}\n" for package in packages]
    (folder / "links").write_text("".join(links), encoding="utf-8")
    _pip_download(["--no-deps", "--require-hashes", "--requirement", str(folder / "links")], folder / "wheels")
    for name in ("packages.lock", "pylock.toml", "links"):
        (folder / name).unlink()
    facts = {"build": build.name, "python": python_version()}
    (folder / "bundle.json").write_text(json.dumps(facts), encoding="utf-8")
    # Licences of the packages on this computer: another build of PyTorch adds no licence.
    text = third_party.notice(
        third_party.read_packages(ROOT / "requirements.lock"), ROOT / "assets/starter/sources.json"
    )
    (folder / "THIRD-PARTY.txt").write_text(text, encoding="utf-8")


def best_wheel(wheels: Sequence[Mapping[str, Any]]) -> str:
    """Return URL and hash of the wheel that fits this computer best. wheels: as in pylock.toml."""
    ranks = {tag: rank for rank, tag in enumerate(packaging.tags.sys_tags())}
    fitting = {}
    for wheel in wheels:
        name = urllib.parse.unquote(wheel["url"].rpartition("/")[2])
        tags = packaging.utils.parse_wheel_filename(name)[3]
        if found := [ranks[tag] for tag in tags if tag in ranks]:
            fitting[min(found)] = f"{wheel['url']}#sha256={wheel['hashes']['sha256']}"
    return fitting[min(fitting)]


def desktop_entry() -> str:
    """Return the menu entry with actions that only the launcher knows."""
    return (ROOT / f"assets/desktop/{ID}.desktop").read_text(encoding="utf-8") + _ACTIONS


def _run_header(version: str, payload_bytes: int, folder: Path, tar_option: str) -> bytes:
    """Return the script of the .run. The script contains its own length."""
    unpacked = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    values = {"VERSION": version, "PAYLOAD_BYTES": str(payload_bytes), "TAR_OPTION": tar_option}
    values["PAYLOAD_MB"] = str(unpacked // 10**6 + 1)
    text = _replaced((HERE / "run-header").read_text(encoding="utf-8"), values)
    header = ""
    for _ in range(3):  # the length changes its own number of digits once at most
        header = text.replace("HEADER_BYTES", str(len(header)))
    return header.encode("ascii")


def _write_tar(folder: Path, file: io.BufferedIOBase) -> None:
    """Write a folder as a tar archive: sorted, without owners, with one time for all files."""
    _normalise(folder)
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(folder.rglob("*")):
            info = tar.gettarinfo(path, path.relative_to(folder).as_posix())
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            with path.open("rb") if path.is_file() else io.BytesIO() as content:
                tar.addfile(info, content)


def _gzip(raw: io.BufferedWriter) -> io.BufferedIOBase:
    return gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)


def _normalise(tree: Path) -> None:
    """Set time and permissions of a tree's files, whatever the umask."""
    programs = ("uv", "uv.exe", "start", "prerm", "postrm")
    for path in (tree, *tree.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.name in programs else 0o644)
        os.utime(path, (epoch(), epoch()), follow_symlinks=False)


def _replaced(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def _pip_download(words: list[str], folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    subprocess.run([*command, "--dest", str(folder), *words], check=True)


def main() -> int:
    """Build what the command line asks for, and print the paths and sizes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    available = {build.name: build for build in builds(platform.system(), platform.machine())}
    parser.add_argument("--bundle", action="store_true", help="build the offline bundle")
    parser.add_argument("--torch", choices=available, default="", help="the bundle's build of PyTorch")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as name:
        work = Path(name)
        for part in ("wheel", "uv", "bundle"):
            (work / part).mkdir()
        wheel, uv = build_wheel(work / "wheel"), fetch_uv("linux", work / "uv")
        if options.bundle:
            fetch_bundle(
                available.get(options.torch) or next(b for b in available.values() if b.on_index), work / "bundle"
            )
            made = [make_run(wheel, uv, out, work / "bundle")]
        else:
            made = [make_deb(wheel, uv, out), make_run(wheel, uv, out), *make_others(wheel, work, out)]
    for path in made:
        sys.stdout.write(f"{path}  {path.stat().st_size / 10**6:,.1f} MB\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
