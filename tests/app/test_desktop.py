"""Desktop notifications, also over a private D-Bus, and the sleep inhibitor."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import JobEnded
from studio.app.desktop import BusNotifier, Notifier, RunAnnouncer, SleepInhibitor, TrayNotifier
from studio.app.state.settings import Settings
from studio.app.state.training.training import CurrentTraining
from studio.core.events import Blocked, Event, JobFailed, RunFinished
from studio.core.wake_lock import WakeLock
from tests.app.conftest import LONG_MS

State = Qt.ApplicationState


class Heard(Notifier):
    """Collects notifications instead of showing them."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[tuple[str, str]] = []
        self.withdrawn = 0

    def notify(self, title: str, text: str) -> None:
        self.said.append((title, text))

    def withdraw(self) -> None:
        self.withdrawn += 1


@pytest.fixture
def training(job_queue: JobQueue) -> CurrentTraining:
    """A training of a run with the title 'cats generator'."""
    made = CurrentTraining(job_queue)
    made.title = "cats generator"
    return made


@pytest.fixture
def heard(qtbot: QtBot, training: CurrentTraining, monkeypatch: pytest.MonkeyPatch) -> Heard:
    """The notifications about this training while another program is in front."""
    monkeypatch.setattr(QGuiApplication, "applicationState", lambda: State.ApplicationInactive)
    window, notifier = QWidget(), Heard()
    qtbot.addWidget(window)
    RunAnnouncer(training, Settings(), window, notifier)
    return notifier


def run(training: CurrentTraining, *events: Event) -> None:
    """A run begins, tells these events and ends."""
    training._set_state("training")
    for event in [*events, JobEnded("done")]:
        training._receive(event)


def ended(training: CurrentTraining, reason: str) -> None:
    run(training, RunFinished(reason, 9, 1.0, Path("run")))  # type: ignore[arg-type]


def test_run_end_and_failure_are_notified_in_the_background(
    training: CurrentTraining, heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended(training, "finished")
    ended(training, "stopped")
    assert [title for title, _ in heard.said] == ["'cats generator' has finished"]
    heard.said.clear()
    run(training, Blocked("error", "The disk is full."), JobFailed("The device is gone.", "Plug it in."))
    assert heard.said == [
        ("'cats generator' is paused", "The disk is full."),
        ("'cats generator' ended with an error", "The device is gone."),
    ]
    training.failure = None
    heard.said.clear()
    monkeypatch.setattr(QGuiApplication, "applicationState", lambda: State.ApplicationActive)
    ended(training, "finished")
    assert not heard.said


def test_queue_end_is_notified_with_counts_unless_disabled(
    qtbot: QtBot, training: CurrentTraining, heard: Heard
) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    announcer = RunAnnouncer(training, Settings(), window, heard)
    announcer.on_queue_emptied(3, 0)
    announcer.on_queue_emptied(1, 2)
    assert heard.said == [
        ("The queue is empty", "3 runs finished."),
        ("The queue is empty", "1 run finished, 2 runs ended with an error."),
    ]
    Settings().set_notifies(False)
    announcer.on_queue_emptied(1, 0)
    assert len(heard.said) == 2


def test_a_click_raises_the_window_and_activation_withdraws_notifications(
    qtbot: QtBot, training: CurrentTraining
) -> None:
    window, notifier = QWidget(), Heard()
    qtbot.addWidget(window)
    RunAnnouncer(training, Settings(), window, notifier)
    window.showMinimized()
    notifier.clicked.emit()
    assert window.isVisible() and not window.isMinimized()
    application = QGuiApplication.instance()
    assert isinstance(application, QGuiApplication)
    application.applicationStateChanged.emit(State.ApplicationInactive)
    assert notifier.withdrawn == 0
    application.applicationStateChanged.emit(State.ApplicationActive)
    assert notifier.withdrawn == 1


def test_sleep_is_inhibited_only_while_a_run_trains(training: CurrentTraining, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for name in ("acquire", "release"):
        monkeypatch.setattr(WakeLock, name, lambda self, name=name: done.append(name))
    guard = SleepInhibitor(training)
    for state in ("starting", "training", "paused", "training", "stopping", "idle"):
        training._set_state(state)
    assert done == ["acquire", "acquire", "release", "acquire", "acquire", "release"]
    guard.release()
    assert done[-1] == "release"


@pytest.mark.usefixtures("bus")
def test_notifications_are_sent_over_d_bus_and_report_clicks(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test plays the desktop, with the types that the specification wants."""
    from jeepney import DBusAddress, HeaderFields, message_bus, new_method_return, new_signal
    from jeepney.io.blocking import Proxy, open_dbus_connection

    name, path = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
    monkeypatch.setenv("XDG_ACTIVATION_TOKEN", "")
    notifier = BusNotifier()
    with open_dbus_connection() as desktop:
        assert Proxy(message_bus, desktop).RequestName(name) == (1,)
        notifier.notify("'cats' is trained", "Ended at step 9 & saved.")
        while (call := desktop.receive(timeout=5)).header.fields.get(HeaderFields.member) != "Notify":
            pass
        assert call.header.fields[HeaderFields.signature] == "susssasa{sv}i"
        _, replaces, icon, title, text, actions, hints, expires = call.body
        assert (title, text) == ("'cats' is trained", "Ended at step 9 &amp; saved.")
        assert (replaces, actions[0], expires) == (0, "default", -1) and "desktop-entry" in hints
        assert Path(icon.removeprefix("file://")).is_file()
        desktop.send(new_method_return(call, "u", (7,)))
        emitter = DBusAddress(path, interface=name)
        with qtbot.waitSignal(notifier.clicked, timeout=LONG_MS):
            for other in (6, 7):
                desktop.send(new_signal(emitter, "ActivationToken", "us", (other, f"token {other}")))
            desktop.send(new_signal(emitter, "ActionInvoked", "us", (7, "default")))
        assert os.environ["XDG_ACTIVATION_TOKEN"] == "token 7"
        notifier.withdraw()
        closed = desktop.receive(timeout=5)
        assert (closed.header.fields[HeaderFields.member], closed.body) == ("CloseNotification", (7,))
    notifier.close()


@pytest.mark.usefixtures("bus")
def test_a_notification_id_that_arrives_after_withdraw_is_closed(qtbot: QtBot) -> None:
    from jeepney import HeaderFields, message_bus, new_method_return
    from jeepney.io.blocking import Proxy, open_dbus_connection

    notifier = BusNotifier()
    with open_dbus_connection() as desktop:
        assert Proxy(message_bus, desktop).RequestName("org.freedesktop.Notifications") == (1,)
        notifier.notify("'cats' is trained", "Ended at step 9.")
        while (call := desktop.receive(timeout=5)).header.fields.get(HeaderFields.member) != "Notify":
            pass
        notifier.withdraw()
        desktop.send(new_method_return(call, "u", (7,)))
        closed = list[object]()

        def is_closed() -> bool:
            with contextlib.suppress(TimeoutError):
                closed.append(desktop.receive(timeout=0).body)
            return closed == [(7,)]

        qtbot.waitUntil(is_closed, timeout=LONG_MS)
    notifier.close()


@pytest.mark.parametrize("address", [None, "", "unix:path=/nowhere", "tcp:host=nowhere", "nonsense"])
def test_no_notification_without_a_desktop(address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DBUS_SESSION_BUS_ADDRESS", raising=False)
    if address is not None:
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", address)
    notifiers = (BusNotifier(), TrayNotifier()) if sys.platform == "linux" else (TrayNotifier(),)
    for notifier in notifiers:
        notifier.notify("Title", "Text")
        notifier.withdraw()
        notifier.close()


@pytest.mark.usefixtures("bus")
def test_a_bus_without_notification_service_is_logged(qtbot: QtBot, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "studio")
    notifier = BusNotifier()
    notifier.notify("Title", "Text")
    qtbot.waitUntil(lambda: "not provided by any .service files" in caplog.text, timeout=LONG_MS)
    notifier.withdraw()
    notifier.close()
