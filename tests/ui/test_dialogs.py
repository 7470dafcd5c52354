"""Where to save: a name gets the ending of its kind, and nothing is overwritten that nobody was asked about."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QFileDialog, QWidget
from pytestqt.qtbot import QtBot

from studio.app import dialogs
from studio.app.pages.base import Page
from studio.app.state.session import Session
from studio.app.state.settings import Settings
from studio.core.events import Notice

_PNG, _CSV = "PNG picture (*.png)", "CSV table (*.csv)"


def answer(monkeypatch: pytest.MonkeyPatch, path: Path, kind: str) -> None:
    """What the user types into the system's dialog."""
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *args: (str(path), kind))


@pytest.mark.parametrize(
    ("typed", "kind", "expected"),
    [
        ("loss", _PNG, "loss 2.png"),  # not the one that is there
        ("loss.png", _PNG, "loss.png"),  # the dialog has asked
        ("loss.PNG", _CSV, "loss.PNG"),
        ("loss.csv", _PNG, "loss.csv"),
        ("loss", _CSV, "loss.csv"),
        ("hero 1.5", _PNG, "hero 1.5.png"),
        ("loss.txt", "", "loss.txt.png"),
    ],
)
def test_a_name_gets_the_ending_of_its_kind(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str, kind: str, expected: str
) -> None:
    (tmp_path / "loss.png").write_text("old")
    answer(monkeypatch, tmp_path / typed, kind)
    parent = QWidget()
    qtbot.addWidget(parent)
    chosen = dialogs.for_new_file(parent, Settings(), "Save", "plot.png", f"{_PNG};;{_CSV}")
    assert chosen == tmp_path / expected


def test_fault_13_what_is_proposed_stays_in_the_folder(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposed: list[str] = []

    def take(parent: QWidget, title: str, start: str, kinds: str) -> tuple[str, str]:
        proposed.append(start)
        return "", ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", take)
    parent, settings = QWidget(), Settings()
    qtbot.addWidget(parent)
    settings.keep_text("last_save_folder", str(tmp_path))
    for name in ("../../x.gpl", "/etc/x.png", "swords/long 1.5.png", "model"):
        assert dialogs.for_new_file(parent, settings, "Save", name, _PNG) is None
    names = ["_.._x.gpl", "_etc_x.png", "swords_long 1.5.png", "model"]
    assert [Path(path) for path in proposed] == [tmp_path / name for name in names]


class Ear(QObject):
    def __init__(self, session: Session) -> None:
        super().__init__()
        self.titles: list[str] = []
        session.noticed.connect(self.take)

    @Slot(object)
    def take(self, notice: Notice) -> None:
        self.titles.append(notice.title)


def test_a_plot_is_saved_beside_the_old_one_and_its_name_is_said(
    qtbot: QtBot, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from studio.app.widgets.plot.loss_plot import LossPlot

    page, plot, ear = Page(session), LossPlot(), Ear(session)
    for widget in (page, plot):
        qtbot.addWidget(widget)
    plot.append([0, 1], [2.0, 1.0])
    (tmp_path / "loss.csv").write_text("old")
    answer(monkeypatch, tmp_path / "loss", _CSV)
    page.save_plot(plot, "loss.png")
    assert (tmp_path / "loss.csv").read_text() == "old"
    assert (tmp_path / "loss 2.csv").read_text().startswith("step,loss")
    assert ear.titles == ["Saved as loss 2.csv."]
