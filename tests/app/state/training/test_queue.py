"""The queue in the window: runs are added, ordered, trained one after the other, and offered after a restart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from studio.app.pages.runs.queue_panel import QueuePanel
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.app.window import Window
from studio.core import paths
from studio.engine.runs import queue
from studio.engine.runs.folder import RunDir, RunProgress
from studio.engine.training.create import NewRun, create_queued_run
from studio.recipes.generator import Generator
from tests.app.conftest import LONG_MS, click, start_endless, tiny, wait_for_steps, wait_idle
from tests.app.pages.test_pages import texts
from tests.conftest import make_sprites
from tests.engine.runs.test_damaged_runs import flip
from tests.engine.tools import CPU, small_generator


@pytest.fixture(scope="module")
def one_queued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A queued run for copying."""
    path = tmp_path_factory.mktemp("queued") / "trial"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STUDIO_HOME", str(tmp_path_factory.mktemp("home")))
        list(create_queued_run(NewRun(path, make_sprites(), Generator(), small_generator(steps=1), CPU)))
    return path


@pytest.fixture
def three(one_queued: Path) -> dict[str, Path]:
    """Three runs that wait from before. Ask for them before the window."""
    found = {name: shutil.copytree(one_queued, paths.runs() / name) for name in "abc"}
    for path in found.values():
        queue.append(path)
    return found


def names(session: Session) -> list[str]:
    return [run.path.name for run in session.queue.runs]


def wait_for(qtbot: QtBot, session: Session, *expected: str) -> None:
    qtbot.waitUntil(lambda: names(session) == list(expected), timeout=LONG_MS)


def state_of(run: Path) -> str:
    return RunDir(run).progress().state


def panel_of(window: Window) -> QueuePanel:
    window.show_page("runs")
    return window.runs.queue


def test_queued_runs_train_one_after_the_other(qtbot: QtBot, opened: Window) -> None:
    session, controls, panel = opened.session, opened.train.controls, panel_of(opened)
    assert panel.isHidden()
    opened.show_page("train")
    session.setup.choose_parent(None)
    session.setup.set_config(tiny(session, steps=2, seed=3))
    click(controls.queue)
    wait_for(qtbot, session, "discs generator")
    assert not session.training.is_busy() and not opened.notices.cards()
    assert "1 run in the queue: start on the Runs page." in texts(controls)
    assert opened.menus.undo.text() == "Undo add discs generator to the queue"
    opened.menus.undo.trigger()
    wait_for(qtbot, session)
    assert not (paths.runs() / "discs generator").exists()
    opened.menus.redo.trigger()
    wait_for(qtbot, session, "discs generator")
    training = start_endless(qtbot, session)
    session.setup.set_config(tiny(session, steps=2, seed=5))
    click(controls.queue)
    wait_for(qtbot, session, "discs generator", "discs generator 3")
    assert training.state == "training" and {run.standing for run in session.queue.runs} == {"queued"}
    session.setup.set_config(tiny(session, steps=2, seed=7))
    panel_of(opened)
    assert panel.isVisible() and panel.switch.text().strip() == "Start queue"
    with qtbot.waitSignal(session.queue.emptied, timeout=LONG_MS) as emptied:
        click(panel.switch)
        assert panel.switch.text().strip() == "Pause queue"
        training.stop()
    assert emptied.args == [2, 0]
    wait_for(qtbot, session)
    assert panel.isHidden() and not session.queue.is_on
    found = {run.path.name: (run.standing, run.record.config["seed"]) for run in session.runs.runs if run.record}
    assert found == {
        "discs generator": ("finished", 3), "discs generator 2": ("stopped", 0), "discs generator 3": ("finished", 5),
    }  # fmt: skip
    added = next(step for step in session.setup.history.steps()[0] if step.title == "add discs generator to the queue")
    with qtbot.waitSignal(session.failed, timeout=LONG_MS) as failed:
        added.undo()
    assert failed.args[0].title == "'discs generator' has trained meanwhile."
    assert (paths.runs() / "discs generator").exists()
    assert session.setup.config == tiny(session, steps=2, seed=7)  # starting a queued run changes no shown settings


def test_runs_are_ordered_by_buttons_keys_and_dragging_and_removed(
    qtbot: QtBot, three: dict[str, Path], window: Window
) -> None:
    session, panel = window.session, panel_of(window)
    wait_for(qtbot, session, "a", "b", "c")
    assert not panel.remove.isEnabled() and not panel.earlier.isEnabled()
    panel.list.setCurrentRow(2)
    click(panel.earlier)
    wait_for(qtbot, session, "a", "c", "b")
    assert panel.list.currentRow() == 1
    panel.list.setFocus()
    QTest.keyClick(panel.list, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    wait_for(qtbot, session, "c", "a", "b")
    assert panel.list.currentRow() == 0 and panel.earlier.toolTip() == "Move up: already the first run."
    panel.list.model().moveRow(panel.list.rootIndex(), 0, panel.list.rootIndex(), 3)  # like a drop does
    panel.list.dropped.emit()
    wait_for(qtbot, session, "a", "b", "c")
    click(panel.remove)
    wait_for(qtbot, session, "a", "b")
    assert state_of(three["c"]) == "stopped" and panel.paths() == [three["a"], three["b"]]
    assert window.menus.undo.text() == "Undo remove c from the queue"
    window.menus.undo.trigger()
    wait_for(qtbot, session, "a", "b", "c")
    window.menus.undo.trigger()  # the drop
    wait_for(qtbot, session, "c", "a", "b")
    for _ in range(2):
        window.menus.redo.trigger()
    wait_for(qtbot, session, "a", "b")
    queue.append(three["c"])  # by a command
    window.show_page("train")
    window.show_page("runs")
    wait_for(qtbot, session, "a", "b", "c")


def test_after_a_restart_the_queue_is_offered_and_an_interrupted_run_of_it_with_it(
    qtbot: QtBot, three: dict[str, Path], window: Window
) -> None:
    RunDir(three["a"]).write_progress(RunProgress("training", 0, 0.0, {}))  # killed
    session = window.session
    session.runs.list_runs()
    cards = window.notices.cards
    qtbot.waitUntil(lambda: bool(cards()), timeout=LONG_MS)
    qtbot.waitUntil(lambda: session.queue.runs[0].standing == "interrupted", timeout=LONG_MS)
    assert [card.texts[0] for card in cards()] == ["3 runs wait in the queue."] and not session.training.is_busy()
    flip(three["b"] / "data.safetensors")
    with qtbot.waitSignal(session.queue.emptied, timeout=LONG_MS) as emptied:
        cards()[0].clicked.emit()
        assert "3 runs wait in the queue." not in [card.texts[0] for card in cards()]
    assert emptied.args == [2, 1]
    wait_for(qtbot, session)
    qtbot.waitUntil(lambda: state_of(three["b"]) == "failed", timeout=LONG_MS)
    assert [state_of(three[name]) for name in "ac"] == ["finished", "finished"]
    assert "damaged" in RunDir(three["b"]).progress().message


@pytest.mark.slow
def test_a_paused_queue_starts_no_run_and_stopped_runs_leave_it(
    qtbot: QtBot, three: dict[str, Path], ready: Session
) -> None:
    training = start_endless(qtbot, ready)
    wait_for(qtbot, ready, "a", "b", "c")
    ready.queue.start()  # it waits for the running training
    qtbot.waitUntil(lambda: not ready.job_queue.running()[1:], timeout=LONG_MS)
    assert training.path is not None and training.path.name == "discs generator"
    training.stop()
    qtbot.waitUntil(lambda: training.path == three["a"], timeout=LONG_MS)
    ready.queue.pause()
    training.stop()
    wait_idle(qtbot, ready)
    wait_for(qtbot, ready, "b", "c")
    assert state_of(three["a"]) in ("stopped", "finished") and not training.is_busy() and not ready.queue.is_on


def test_a_run_that_the_closing_window_saves_keeps_its_place(qtbot: QtBot, opened: Window) -> None:
    session = opened.session
    session.setup.choose_parent(None)
    session.setup.set_config(tiny(session, steps=1_000_000))
    for _ in range(2):
        session.queue_training()
    wait_for(qtbot, session, "discs generator", "discs generator 2")
    session.queue.start()
    wait_for_steps(qtbot, session)
    with qtbot.waitSignal(opened.close_guard.ready, timeout=LONG_MS):
        opened.close_guard.close_after_saving()
    assert not session.queue.is_on
    wait_for(qtbot, session, "discs generator", "discs generator 2")
    qtbot.waitUntil(lambda: session.queue.runs[0].standing == "stopped", timeout=LONG_MS)
    offers, fresh = list[str](), Session(Settings())
    fresh.queue_offered.connect(offers.append)
    fresh.open()
    qtbot.waitUntil(lambda: bool(offers), timeout=LONG_MS)
    assert offers == ["2 runs wait in the queue."] and not fresh.training.is_busy()
    assert fresh.close()
