"""Fault 20: `kill -9` at 200 random moments of training, importing, exporting and drawing, each gone on with."""

from __future__ import annotations

import collections
import itertools
import json
import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import torch
from PIL import Image

from studio.core.events import Exported
from studio.data.store import packed
from studio.engine.models.exporting import export
from studio.engine.models.loading import load_model
from studio.engine.runs import checkpoints
from studio.engine.runs.folder import RunDir
from studio.engine.runs.history import read_history
from studio.engine.runs.listing import list_runs, summarise
from studio.exports import model_cards
from tests.campaigns import tell
from tests.campaigns.apart import server
from tests.campaigns.works import INTERVAL, KINDS, STEPS, live, make_folder, plain
from tests.engine.tools import CPU, of_kind

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.name == "nt", reason="Windows forks no process and knows no kill -9"),
]

_LONGEST_S = 60.0  # of a life that nobody ends
_STALE_S = 7200.0


@dataclass
class Life:
    """What a process has told of its life. seconds: from its beginning to its end."""

    seconds: float = 0.0
    told: dict[str, list[Any]] = field(default_factory=lambda: collections.defaultdict(list))

    @property
    def killed(self) -> bool:
        return "calls" not in self.told


def lead(name: str, folder: Path, at_call: int | None = None, after_s: float | None = None) -> Life:
    """One process that works, until it is done, or until its call of this number or its moment `after_s`."""
    ours, theirs = server().Pipe(duplex=False)
    process = server().Process(target=live, args=(name, folder, at_call, theirs))
    process.start()
    theirs.close()
    life = Life()
    try:
        assert ours.recv() == ("begun", None)
        begun_s = time.perf_counter()
        process.join(_LONGEST_S if after_s is None else after_s)
        life.seconds = time.perf_counter() - begun_s
    finally:
        process.kill()
        process.join()
    try:
        while True:
            word, value = ours.recv()
            life.told[word].append(value)
    except EOFError:
        pass
    assert "wrong" not in life.told, life.told["wrong"][0]
    ends_itself = at_call is None and after_s is None
    assert not (ends_itself and life.killed), f"{name} did not end in {_LONGEST_S:.0f} s."
    assert process.pid is not None
    _nobody_is_left(process.pid)
    return life


def _nobody_is_left(session: int) -> None:
    """Processes that it had started notice that they are alone, and end."""
    until_s = time.monotonic() + 20
    while left := [process for process in psutil.process_iter() if _session(process.pid) == session]:
        psutil.wait_procs(left, timeout=0.2)
        assert time.monotonic() < until_s, f"{left} outlive the studio that started them."


def _session(pid: int) -> int:
    try:
        return -1 if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE else os.getsid(pid)
    except (psutil.NoSuchProcess, ProcessLookupError, PermissionError):
        return -1


def campaign(
    name: str,
    kills: int,
    new_folder: Callable[[], Path],
    check_killed: Callable[[Path, Life], None],
    check_finished: Callable[[Path], None],
) -> None:
    """Kill `name` so often, half of the times at a moment and half at a call that changes a file, and go on with it.

    The moments are anywhere in what an undisturbed life takes. One that is killed is checked and gone on with; one that
    gets to its end all the same is checked, and another begins in a new folder.
    """
    chance = random.Random(f"{name} 20")
    whole = lead(name, new_folder())
    calls = whole.told["calls"][0]
    lives, phases, folder = itertools.count(1), collections.Counter[str](), new_folder()
    while phases.total() < kills:
        if phases.total() % 2:
            life = lead(name, folder, at_call=chance.randint(1, calls))
        else:
            life = lead(name, folder, after_s=chance.uniform(0, whole.seconds))
        next(lives)
        if life.killed:
            at = life.told["killed at"]
            phases[f"at {at[0].split()[0]}" if at else "computing or writing"] += 1
            check_killed(folder, life)
        else:
            check_finished(folder)
            folder = new_folder()
    lead(name, folder)
    check_finished(folder)
    said = ", ".join(f"{count} {phase}" for phase, count in phases.most_common())
    tell(f"{name}: {phases.total()} kills in {next(lives)} lives of {whole.seconds:.2f} s and {calls} calls: {said}")


def folders(name: str, place: Path) -> Callable[[], Path]:
    """Makes one folder after another for a work of that name, each a copy of the first."""
    make_folder(name, place / "first")
    numbers = itertools.count()

    def new() -> Path:
        return Path(shutil.copytree(place / "first", place / str(next(numbers))))

    return new


def contents(folder: Path) -> dict[Path, bytes]:
    """Every file under `folder` with a hash of what is in it."""
    return {
        path.relative_to(folder): sha256(path.read_bytes()).digest() for path in folder.rglob("*") if path.is_file()
    }


def weights(run: Path) -> dict[str, torch.Tensor]:
    found, info = checkpoints.list_checkpoints(run / "checkpoints")[-1]
    assert info.step == STEPS
    parts = {part: checkpoints.load_tensors(found, info, part) for part in checkpoints.PARTS}
    return {f"{part} {name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_fault_20_training(kind: str, tmp_path: Path) -> None:
    new_folder, name = folders(f"train {kind}", tmp_path), f"train {kind}"
    undisturbed = new_folder()
    lead(name, undisturbed)
    expected, losses = weights(undisturbed / "run"), read_history(undisturbed / "run").series["loss"]
    undisturbed_samples = undisturbed / "run" / "samples"
    exports, lost = itertools.count(), list[int]()

    def check_killed(folder: Path, life: Life) -> None:
        run = folder / "run"
        if not (run / "run.json").exists():
            assert not life.told["started"]
            assert not _listed(run)
            return
        assert summarise(run).standing in ("interrupted", "finished") and _listed(run) and not RunDir(run).is_busy()
        found, damaged = checkpoints.scan(run / "checkpoints")
        assert not damaged
        for path, info in found:
            assert all(checkpoints.load_tensors(path, info, part) for part in checkpoints.PARTS)
        newest = found[-1][1].step if found else 0
        assert newest >= max(life.told["checkpoint"] + life.told["started"], default=0)
        lost.append(max(life.told["step"] + [newest]) - newest)
        assert lost[-1] <= INTERVAL
        steps = read_history(run).series["loss"].steps.tolist() if life.told["step"] else []
        assert steps == list(range(len(steps)))
        if found and not next(exports) % 8:
            model = load_model(run, "best", CPU)
            assert of_kind(list(export(model, "safetensors", folder / "exported")), Exported)

    def check_finished(folder: Path) -> None:
        run = folder / "run"
        assert summarise(run).standing == "finished" and not list(run.rglob(".tmp-*"))
        found = weights(run)
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)
        curve = read_history(run).series["loss"]
        np.testing.assert_array_equal(curve.steps, losses.steps)
        np.testing.assert_array_equal(curve.values, losses.values)
        drawn = {path.name for path in (run / "samples").iterdir()}  # one may go with the moment that it was due at
        due = {path.name for path in undisturbed_samples.iterdir()}
        assert due & {"00000000.png", f"{STEPS:08d}.png"} <= drawn <= due

    campaign(name, 45, new_folder, check_killed, check_finished)
    tell(f"{name}: at most {max(lost)} steps of {INTERVAL} between two checkpoints were trained anew")


def _listed(run: Path) -> bool:
    """Whether the list of runs has it."""
    (listed,) = list_runs([run])
    return run.resolve() in [summary.path for summary in listed.runs]  # type: ignore[attr-defined]


def test_fault_20_importing(tmp_path: Path) -> None:
    new_folder = folders("import", tmp_path)
    originals = contents(tmp_path / "first" / "sprites")
    undisturbed = lead("import", new_folder()).told["imported"]

    def check_killed(folder: Path, life: Life) -> None:
        assert contents(folder / "sprites") == originals
        for entry in (folder / "cache").glob("import-*"):
            assert packed.load(entry).fingerprint == undisturbed[0][0]
        assert life.told["imported"] in ([], undisturbed)

    def check_finished(folder: Path) -> None:
        again = lead("import", folder)
        assert again.told["imported"] == undisturbed and again.told["from the cache"] == [True]
        assert contents(folder / "sprites") == originals
        for entry in (folder / "cache").glob("import-*"):
            entry.unlink()
        _grow_old(folder / "cache")
        lead("import", folder)
        assert len(contents(folder / "cache")) == 1

    campaign("import", 40, new_folder, check_killed, check_finished)


@pytest.mark.parametrize(
    ("name", "kills", "count"),
    [("export safetensors", 15, 1), ("export state_dict", 15, 1), ("generate sheet", 20, 1), ("generate files", 20, 6)],
)
def test_fault_20_exporting_and_generating(name: str, kills: int, count: int, tmp_path: Path) -> None:
    new_folder = folders(name, tmp_path)
    run, undisturbed = contents(tmp_path / "first" / "run"), new_folder()
    assert lead(name, undisturbed).told["exit code"] == [0]
    expected = {path.stem: _read(path) for path in _written(undisturbed) if path.suffix in _RESULTS}
    assert len(expected) == count

    def check_killed(folder: Path, life: Life) -> None:
        assert contents(folder / "run") == run
        for path in _written(folder):
            if path.suffix in _RESULTS:
                first = path.stem if path.stem in expected else path.stem.rpartition("-")[0]  # 'sheet-2'
                assert _read(path) == expected[first]
            elif path.name.endswith(model_cards.JSON_ENDING):
                assert model_cards.read_card(path).files  # refuses one that is not whole
            elif path.name.endswith(model_cards.PAGE_ENDING):
                assert path.read_text().endswith("</html>\n")
            elif path.suffix == ".json":
                assert len(json.loads(path.read_text())["frames"]) == 6
            else:
                compile(path.read_text(), path.name, "exec")

    def check_finished(folder: Path) -> None:
        check_killed(folder, Life())
        _grow_old(folder / "out")
        assert lead(name, folder).told["exit code"] == [0]
        assert not list((folder / "out").rglob(".tmp-*"))  # what kills have left is swept some hours later
        check_killed(folder, Life())

    campaign(name, kills, new_folder, check_killed, check_finished)


_RESULTS = {".safetensors", ".pt", ".png"}  # the same each time


def _written(folder: Path) -> list[Path]:
    """The files that are whole."""
    return [path for path in (folder / "out").rglob("*") if path.is_file() and not path.name.startswith(".tmp-")]


def _read(path: Path) -> tuple[tuple[int, int], bytes] | bytes:
    """Pixels or weights."""
    if path.suffix != ".png":
        return plain(path.name, path.read_bytes())
    with Image.open(path) as picture:
        return picture.size, picture.convert("RGBA").tobytes()


def _grow_old(folder: Path) -> None:
    """Some hours pass for what is half-written there."""
    for path in folder.rglob(".tmp-*"):
        os.utime(path, (time.time() - _STALE_S,) * 2)
