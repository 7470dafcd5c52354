"""The undo history: titles, limits, failed actions, and the steps of settings, runs and the queue."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pytestqt.qtbot import QtBot

from studio.app.state.session import Session
from studio.app.state.undo import UndoHistory, UndoStep
from studio.core import paths
from studio.engine.runs.notes import read_notes
from tests.app.conftest import LONG_MS, open_sprites
from tests.engine.tools import bare_run


def titles(history: UndoHistory) -> tuple[str, str]:
    """Return what Undo and Redo would name."""
    latest, following = history.latest, history.next
    return latest.title if latest is not None else "", following.title if following is not None else ""


def test_history_keeps_the_last_steps_and_drops_undone_ones(qtbot: QtBot) -> None:
    history, done = UndoHistory(), list[int]()
    for number in range(120):
        done.append(number)
        history.add(UndoStep(f"add {number}", done.pop, partial(done.append, number)))
    assert titles(history) == ("add 119", "")
    for _ in range(120):
        history.undo()
    assert done == list(range(20)) and titles(history) == ("", "add 20")
    history.redo()
    history.redo()
    assert done[-1] == 21 and titles(history) == ("add 21", "add 22")
    offered = history.offer(UndoStep("other", done.clear, done.clear), "Other.")
    offered.undo()
    assert not offered.holds() and done[-1] == 21  # only the latest action can be undone by its message
    history.add(UndoStep("clear", list, list))
    assert titles(history) == ("clear", "")


def test_failed_or_cancelled_imports_leave_the_history(qtbot: QtBot, session: Session, sprite_folder: Path) -> None:
    opened = session.open_sprites
    open_sprites(qtbot, session, sprite_folder)
    session.doctor.exclude(list(opened.sprites.names[:2] if opened.sprites else ()))
    assert titles(opened.history) == ("exclude 2 sprites", "")
    opened.cancel()
    assert titles(opened.history) == ("", "")
    session.doctor.exclude(list(opened.sprites.names if opened.sprites else ()))  # nothing would be left
    qtbot.waitUntil(lambda: not opened.is_busy(), timeout=LONG_MS)
    assert titles(opened.history) == ("", "") and not opened.options.changed()


def test_choices_of_training_settings_are_steps(qtbot: QtBot, ready: Session) -> None:
    setup = ready.setup
    assert setup.config is not None and titles(setup.history) == ("", "")
    first, recipe, width = setup.config, setup.recipe, setup.config.width  # type: ignore[attr-defined]
    for more in (8, 16):  # as a spin box reports each number
        setup.edit_config(setup.config.replace(width=width + more))
    assert titles(setup.history) == ("change width", "")
    setup.choose_recipe("classifier")
    setup.edit_config(setup.config.replace(batch_size=7, seed=3))
    assert titles(setup.history) == ("change settings", "")
    setup.history.undo()
    setup.history.undo()
    assert setup.recipe is recipe and titles(setup.history) == ("change width", "choose Classifier")
    setup.history.undo()
    assert setup.config == first
    for _ in range(3):
        setup.history.redo()
    assert setup.recipe is not None and setup.recipe.name == "classifier" and setup.config.batch_size == 7


def test_notes_stars_and_names_of_runs_are_steps(qtbot: QtBot, session: Session) -> None:
    paths.runs().mkdir(parents=True)
    run = bare_run(paths.runs() / "fox").path
    with qtbot.waitSignal(session.runs.listed, timeout=LONG_MS):
        session.runs.list_runs()

    def settle() -> None:
        qtbot.waitUntil(lambda: not session.job_queue.running(), timeout=LONG_MS)

    session.run_notes.rename(run, "Fox")
    settle()
    session.run_notes.star([run], starred=True)
    for note in ("to", "too wide"):
        session.run_notes.change_notes(run, note=note, tags=None)
        settle()
    history = session.run_history
    assert titles(history) == ("change note of Fox", "")
    history.undo()
    settle()
    assert read_notes(run).note == "" and read_notes(run).starred and titles(history)[0] == "star Fox"
    history.undo()
    history.undo()
    settle()
    assert read_notes(run).name == "" and not read_notes(run).starred and titles(history) == ("", "rename fox")
    for _ in range(3):
        history.redo()
    settle()
    assert read_notes(run).note == "too wide" and read_notes(run).name == "Fox"
