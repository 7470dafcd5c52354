"""--on over real ssh and rsync: to an sshd of this machine whose link is cut in the middle of a training."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from studio.cli import main
from studio.cli.messages import DONE
from studio.core.errors import RunError
from studio.engine.control.protocol import read_heartbeat, send_request
from studio.engine.remote import marker
from studio.engine.remote.ssh import RemoteTarget
from studio.engine.remote.training import check_remote
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.exports.png import save_files
from tests.cli.tools import TINY
from tests.conftest import make_sprites
from tests.engine.remote.machine import wait_until

SSHD = Path("/usr/sbin/sshd")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not SSHD.exists() or not shutil.which("rsync"), reason="Debian's openssh-server and rsync are not here"
    ),
]
ROOT = Path(__file__).parents[2]
STEPS = 800


class Server:
    """An sshd of its own on a high port, and what `ssh far` needs to get there. `folder`: where runs go."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._keys, self.folder = folder / "keys", folder / "far"
        self._process: subprocess.Popen[bytes] | None = None
        self._keys.mkdir()
        for key in ("host", "mine"):
            self.make_key(key)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.known = self._keys / "known"
        self.known.write_text(f"[127.0.0.1]:{port} {(self._keys / 'host.pub').read_text()}")
        shutil.copy(self._keys / "mine.pub", self._keys / "authorized")
        (self._keys / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {self._keys / 'host'}\nPidFile none\nUsePAM no\n"
            f"AuthorizedKeysFile {self._keys / 'authorized'}\nStrictModes no\nPasswordAuthentication no\n"
        )
        self._config = self._keys / "ssh_config"
        self._config.write_text(
            f"Host far\n HostName 127.0.0.1\n Port {port}\n IdentityFile {self._keys / 'mine'}\n IdentitiesOnly yes\n"
            f" IdentityAgent none\n UserKnownHostsFile {self.known}\n GlobalKnownHostsFile /dev/null\n"
        )
        tools = folder / "bin"
        tools.mkdir()
        _program(tools / "ssh", [shutil.which("ssh") or "ssh", "-F", str(self._config)])
        patch.setenv("PATH", os.pathsep.join((str(tools), os.environ["PATH"])))
        (self.folder / ".venv/bin").mkdir(parents=True)
        told = {"STUDIO_HOME": folder / "far home", "PYTHONPATH": os.environ["PYTHONPATH"], "OMP_NUM_THREADS": 1}
        words = ["env", *(f"{name}={value}" for name, value in told.items()), sys.executable, "-m", "studio"]
        _program(self.folder / ".venv/bin/studio", words)
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)

    def make_key(self, name: str, passphrase: str = "") -> None:
        for path in self._keys.glob(f"{name}*"):
            path.unlink()
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", str(self._keys / name)]
        subprocess.run(words, check=True)

    def start(self) -> None:
        log = self._keys / "log"
        log.unlink(missing_ok=True)
        words = [str(SSHD), "-D", "-f", str(self._keys / "sshd_config"), "-E", str(log)]
        self._process = subprocess.Popen(words)
        wait_until(lambda: log.exists() and "Server listening" in log.read_text())

    def cut(self) -> None:
        """Kill it and its sessions; what they have started in the background lives on."""
        if self._process is not None:
            sessions = psutil.Process(self._process.pid).children(recursive=True)
            self._process.kill()
            self._process.wait()
            self._process = None
            for session in sessions:
                with contextlib.suppress(psutil.NoSuchProcess):
                    if session.name().startswith("sshd"):
                        session.kill()


def _program(path: Path, words: Sequence[str]) -> None:
    path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    path.chmod(0o755)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server(tmp_path, monkeypatch)
    server.start()
    yield server
    server.cut()


class Command:
    """`studio` in a process of its own; `said` grows as it speaks."""

    def __init__(self, *words: object) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "studio", *map(str, words)], cwd=ROOT, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.said = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.said += line

    def until(self, words: str) -> None:
        wait_until(lambda: words in self.said or self._process.poll() is not None)
        assert words in self.said, self.said

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def to_the_end(self) -> int:
        code = self._process.wait(300)
        self._reader.join()
        return code


def test_a_cut_link_and_a_killed_command_change_nothing(server: Server, tmp_path: Path) -> None:
    sprites, art = make_sprites(), tmp_path / "discs"
    for label, name in enumerate(sprites.class_names):
        save_files(art / name, sprites.rgba[sprites.labels == label])
    training = [art, "--recipe", "classifier", "--steps", STEPS, *TINY, "--width", 16, "--shift-px", 0]
    training += ["--checkpoint-every-s", 5]
    here, there = tmp_path / "here", tmp_path / "there, too"
    place = f"far:{server.folder}"
    assert main([str(word) for word in ["train", *training, "--out", here]]) == DONE

    command = Command("train", *training, "--out", there, "--on", place)
    command.until("Training the classifier on")
    wait_until((there / "metrics.jsonl").exists)
    send_request(there, pause=True)  # so that it does not end before the link is cut
    wait_until(lambda: (live := read_heartbeat(there)) is not None and live.is_paused)
    server.cut()
    command.until("Reconnecting…")
    send_request(there, pause=False)
    server.start()
    command.until("Connected to far again.")
    wait_until(lambda: RunDir(there).progress().step > 0)
    command.kill()
    assert marker.remote_target_of(there) == place and not RunDir(there).is_busy()
    server.cut()
    again = Command("resume", there, "--on", place)
    assert again.to_the_end() != DONE and "far can't be reached." in again.said
    server.start()
    last = Command("resume", there, "--on", place)
    assert last.to_the_end() == DONE, last.said
    assert RunDir(there).progress().state == "finished" and not marker.remote_target_of(there)
    for name in ("loss", "grad_norm"):
        learnt = [read_history(run).series[name].values.tolist() for run in (here, there)]
        assert len(learnt[0]) == STEPS and learnt[0] == learnt[1]
    newest = f"checkpoints/step-{STEPS:08d}"
    assert (here / newest / "model.safetensors").read_bytes() == (there / newest / "model.safetensors").read_bytes()
    far = server.folder / there.name
    for path in [path for path in far.rglob("*") if path.is_file() and path.parent != far]:
        assert (there / path.relative_to(far)).read_bytes() == path.read_bytes()
    assert (there / "metrics.jsonl").read_bytes() == (far / "metrics.jsonl").read_bytes()


def test_what_ssh_says_is_understood(server: Server) -> None:
    """The words of the ssh that is installed, whichever that is."""
    place = RemoteTarget("far", str(server.folder))
    check_remote(place)
    with pytest.raises(RunError, match="There is no machine named"):
        check_remote(RemoteTarget("nowhere.invalid", "runs"))
    server.make_key("mine", "a passphrase")
    with pytest.raises(RunError, match="denied access"):
        check_remote(place)
    server.known.write_text("")
    with pytest.raises(RunError, match="The identity of"):
        check_remote(place)
    server.cut()
    with pytest.raises(RunError, match="can't be reached"):
        check_remote(place)
