"""What all tests share: a home of their own, and small sprites that a model learns in seconds."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import gc
import importlib
import itertools
import os
import random
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.environment import THREADS  # the environment is read when numpy is imported

# isort: split

import numpy as np
import psutil
import pytest
from numpy.typing import NDArray

from studio.data.attributes.attributes import Attributes
from studio.data.sets.layout import SetLayout
from studio.data.sprites import Sprites

pytest_plugins = ["tests.exports.once"]

# To walk all that torch brings takes longer than many a test, and little of what tests leave behind goes in circles.
gc.set_threshold(100_000)

# Tests that import PyTorch's compiler, torchvision or distributed tensors, which takes a process up to 1.5 s.
_IMPORTING = (
    "exports/", "recipes/", "lab/", "cli/test_lab.py", "cli/test_learn.py", "engine/devices/test_adam.py",
    *(f"contract/test_{kind}.py" for kind in ("exports", "scripts", "recipes", "experiments", "lessons")),
    *(f"engine/{part}/" for part in ("distributed", "models", "sampling", "steps", "training")),
)  # fmt: skip

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no pipes, and links for administrators alone")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import all test modules, each process in another order: in a fresh clone, each is then compiled only once."""
    folder, worker = Path(__file__).parent, getattr(session.config, "workerinput", None)
    if worker is None or [Path(name).absolute() for name in session.config.args] != [folder]:
        return
    paths = sorted(folder.rglob("test_*.py"))
    first = len(paths) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for path in paths[first:] + paths[:first]:
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collection reports it
            importlib.import_module(".".join(path.relative_to(folder.parent).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)  # before Hypothesis looks for constants
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with `_IMPORTING`: then one process imports PyTorch's compiler, and traces each network once."""
    if providers := sys.modules.get("hypothesis.internal.conjecture.providers"):
        # To draw constants from the studio's code, Hypothesis parses all imported modules: each process would take
        # seconds in a fresh clone, and equal seeds would give other examples after an import.
        providers.__dict__["_get_local_constants"] = lambda: providers.__dict__["_local_constants"]
    folder = Path(__file__).parent
    items.sort(key=lambda item: not item.path.relative_to(folder).as_posix().startswith(_IMPORTING))


def pytest_collection_finish() -> None:
    """Leave all that is imported by now out of later collections: it stays, and to walk it takes half a second."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _signals_as_in_a_terminal() -> None:
    """`nohup` has SIGHUP ignored and a shell's background SIGINT, by the tests and by every process that they start."""
    for number, action in (
        (signal.SIGINT, signal.default_int_handler),
        (getattr(signal, "SIGHUP", None), signal.SIG_DFL),
    ):
        if number is not None and signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, action)


_home_numbers = itertools.count()


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs, caches and settings of a test stay in a folder of its own."""
    # Not `mktemp`, which looks through all folders of the tests before: seconds, in all.
    home = tmp_path_factory.getbasetemp() / "homes" / str(next(_home_numbers))
    home.mkdir(parents=True)
    monkeypatch.setenv("STUDIO_HOME", str(home))


@pytest.fixture(autouse=True, scope="session")
def _everywhere() -> Iterator[None]:
    """What holds in all tests, and in what they make once."""
    with pytest.MonkeyPatch.context() as patch:
        count = psutil.cpu_count
        # Detection proposes THREADS threads for the CPU: with more, two test processes wait for each other.
        patch.setattr(psutil, "cpu_count", lambda logical=True: count() if logical else THREADS)
        # fsync takes a fifth of the time of a small training, and no test cuts the power.
        patch.setattr(os, "fsync", lambda handle: None)
        _refuse_networks(patch)
        yield


@pytest.fixture(autouse=True)
def _own_torch() -> Iterator[None]:
    """No test finds the thread count, the random numbers or the modes of torch as another one left them."""
    random.seed(0)
    if "torch" in sys.modules:  # importing it takes seconds, and it comes as it is set here
        _pin_torch()
    yield
    if "torch" in sys.modules:
        _pin_torch()


@pytest.fixture(autouse=True)
def _sampled_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sprites that a training shows on its way take two looks of the network: few tests look at them."""
    if module := sys.modules.get(
        "studio.engine.training.live_samples"
    ):  # to import it here would import torch for every test
        monkeypatch.setattr(module, "SAMPLE_STEPS", 2)


def _pin_torch() -> None:
    import torch

    torch.set_num_threads(THREADS)
    torch.default_generator.manual_seed(0)  # `torch.manual_seed` notes for each device, too, who has asked for it
    modes = torch.is_grad_enabled(), torch.get_default_dtype()
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    assert modes == (True, torch.float32), "A job left torch's modes changed."


def _refuse_networks(patch: pytest.MonkeyPatch) -> None:
    """Fault 30: whatever a test does, it does without a network; who asks for one is refused."""

    def refuse(*arguments: object, **named: object) -> None:
        raise OSError(errno.ENETUNREACH, "Network is unreachable")

    def within_this_machine(ask: Callable[..., Any]) -> Callable[..., Any]:
        """Sockets between processes are no network: a fork server of multiprocessing is asked over one."""

        def asked(sock: socket.socket, *arguments: object) -> Any:
            return ask(sock, *arguments) if sock.family == getattr(socket, "AF_UNIX", None) else refuse()

        return asked

    for asking in ("connect", "connect_ex", "sendto"):
        patch.setattr(socket.socket, asking, within_this_machine(getattr(socket.socket, asking)))
    patch.setattr(socket, "getaddrinfo", refuse)


def make_sprites(per_class: int = 12, size: int = 8, classes: int = 2, seed: int = 0) -> Sprites:
    """Discs on a transparent ground, mottled so that no two are near twins: class k has its own hue and radius."""
    rgba, names = _discs(per_class, size, classes, seed)
    labels = np.repeat(np.arange(classes, dtype=np.int64), per_class)
    return Sprites(rgba.copy(), labels, tuple(f"class{label}" for label in range(classes)), names, "discs")


def with_plain_colours(sprites: Sprites) -> Sprites:
    """The sprites as squares of one random colour each, the largest of all shapes."""
    colours = np.random.default_rng(0).integers(1, 256, (len(sprites), 1, 1, 4), np.uint8)
    return dataclasses.replace(sprites, rgba=colours.repeat(sprites.size, 1).repeat(sprites.size, 2))


@functools.cache
def _discs(per_class: int, size: int, classes: int, seed: int) -> tuple[NDArray[np.uint8], tuple[str, ...]]:
    """Draw the pixels uint8 [N, S, S, 4] and the names of `make_sprites`, once per process."""
    rng = np.random.default_rng(seed)
    grid = np.mgrid[:size, :size] + 0.5
    rgba, names = [], []
    for label in range(classes):
        for number in range(per_class):
            centre = rng.uniform(0.35, 0.65, 2) * size
            radius = size * (0.2 + 0.15 * label / max(1, classes - 1)) + rng.uniform(0, 0.5)
            inside = ((grid - centre[:, None, None]) ** 2).sum(0) < radius**2
            sprite = np.zeros((size, size, 4), np.uint8)
            sprite[inside] = [*np.roll([230, 60, 20], label), 255]
            sprite[inside, :3] -= rng.integers(0, 20, 3, dtype=np.uint8)
            mottled = inside & (rng.random((size, size)) < 0.5)
            sprite[mottled, :3] = sprite[mottled, :3] * 0.8
            rgba.append(sprite)
            names.append(f"class{label}/{number:03d}.png")
    return np.stack(rgba), tuple(names)


def with_numbers(sprites: Sprites) -> Sprites:
    """The same sprites with two numbers: the share of visible pixels, and how red the sprite is on the whole."""
    visible = sprites.rgba[..., 3].mean((1, 2)) / 255
    red = sprites.rgba[..., 0].mean((1, 2)) + 1000
    targets = np.stack([visible, red], 1).astype(np.float32)
    return dataclasses.replace(sprites, targets=targets, target_names=("visible", "red"))


def with_tones(sprites: Sprites) -> Sprites:
    """The same sprites with two attributes: the hue of their class, and a tone, dark (every other sprite) or light."""
    is_light = np.arange(len(sprites)) % 2
    rgba = sprites.rgba.copy()
    rgba[is_light == 0, ..., :3] //= 4
    table = np.stack([sprites.labels, is_light], 1).astype(np.int16)
    hues = tuple(f"hue{label}" for label in range(len(sprites.class_names)))
    attributes = Attributes(("hue", "tone"), (hues, ("dark", "light")), table)
    return dataclasses.replace(sprites, rgba=rgba, attributes=attributes)


def with_sets(sprites: Sprites, cells: tuple[str, ...] = ("down", "up")) -> Sprites:
    """The same sprites as sets: consecutive sprites are the cells of a set."""
    count = len(sprites) // len(cells)
    table = np.arange(count * len(cells), dtype=np.int32).reshape(count, len(cells))
    return dataclasses.replace(
        sprites, sets=SetLayout(cells, tuple(f"set{row}" for row in range(count)), table, "names")
    )


def with_mirrored_views(sprites: Sprites) -> Sprites:
    """Sets of a front, a left and a right view; the right view mirrors the left one, exactly in two of three sets."""
    rgba = sprites.rgba.copy()
    right = rgba[1::3, :, ::-1].copy()
    right[::3, 0, 0] = 255
    rgba[2::3] = right[: len(rgba[2::3])]
    return with_sets(dataclasses.replace(sprites, rgba=rgba), ("down", "left", "right"))


@pytest.fixture
def sprites() -> Sprites:
    """24 sprites of 8x8 in two classes."""
    return make_sprites()


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    """Where a test's run goes."""
    return tmp_path / "runs" / "trial"
