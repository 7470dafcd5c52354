"""Desktop notifications about runs, and the sleep inhibitor.

On Linux, notifications use the D-Bus service org.freedesktop.Notifications, if present: GNOME shows no tray icons, and
PySide's QtDBus can't write the uint32 argument of `Notify`. Other systems use a tray icon.
"""

from __future__ import annotations

import contextlib
import html
import logging
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QSocketNotifier, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from studio.app.background.late_import import LateModule
from studio.app.pages import run_texts
from studio.app.state.settings import Settings
from studio.app.state.training.training import CurrentTraining
from studio.core import paths
from studio.core.events import Blocked, Event, RunFinished
from studio.core.formatting import count
from studio.core.wake_lock import WakeLock

if TYPE_CHECKING:
    import jeepney
    from jeepney.io import blocking
else:
    jeepney, blocking = LateModule("jeepney"), LateModule("jeepney.io.blocking")

_log = logging.getLogger(__name__)
_SERVICE, _PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
_CLICK = "default"  # the action of a click on the notification


class Notifier(QObject):
    """Base class for desktop notifications; shows nothing itself. clicked: the user clicked a notification."""

    clicked = Signal()

    def notify(self, title: str, text: str) -> None:
        """Show a notification."""

    def withdraw(self) -> None:
        """Close the shown notifications."""

    def close(self) -> None:
        """Release the notification service."""


class BusNotifier(Notifier):
    """Shows notifications through D-Bus; connects at the first notification."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bus: blocking.DBusConnection | None = None
        self._readable: QSocketNotifier | None = None
        self._pending: dict[int, bool] = {}  # by serial of a Notify call without a reply: whether to show it
        self._shown: set[int] = set()  # ids of the shown notifications

    def notify(self, title: str, text: str) -> None:
        """Send a notification without waiting for the reply."""
        icon = (paths.assets() / "icons" / "app.svg").as_uri()
        hints = {"desktop-entry": ("s", QGuiApplication.desktopFileName())}
        name, body = QGuiApplication.applicationName(), html.escape(text, quote=False)
        with self._closing_on_error():
            if self._bus is None:
                self._connect()
            values = (name, 0, icon, title, body, [_CLICK, "Show"], hints, -1)
            self._pending[self._call("Notify", "susssasa{sv}i", values)] = True

    def withdraw(self) -> None:
        """Close the shown notifications, and close pending notifications when the service reports their ids."""
        self._pending = dict.fromkeys(self._pending, False)
        if not self._shown:
            return
        with self._closing_on_error():
            for number in self._shown:
                self._call("CloseNotification", "u", (number,))
        self._shown.clear()

    def close(self) -> None:
        """Close the D-Bus connection."""
        if self._readable is not None:
            self._readable.setEnabled(False)
            self._readable.deleteLater()
        if self._bus is not None:
            self._bus.close()
        self._bus = self._readable = None
        self._pending.clear()
        self._shown.clear()

    def _connect(self) -> None:
        self._bus = blocking.open_dbus_connection("SESSION")
        rule = jeepney.MatchRule(type="signal", interface=_SERVICE, path=_PATH)
        self._bus.send(jeepney.message_bus.AddMatch(rule))
        self._readable = QSocketNotifier(self._bus.sock.fileno(), QSocketNotifier.Type.Read, self)
        self._readable.activated.connect(self._on_readable)

    def _call(self, method: str, signature: str, values: tuple[Any, ...]) -> int:
        """Send a D-Bus method call without waiting for the reply, and return the serial number of the call."""
        assert self._bus is not None
        serial: int = next(self._bus.outgoing_serial)
        address = jeepney.DBusAddress(_PATH, _SERVICE, _SERVICE)
        self._bus.send(jeepney.new_method_call(address, method, signature, values), serial)
        return serial

    @contextlib.contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """Close the D-Bus connection after an error in a `with` block. The next notification connects again."""
        try:
            yield
        except (
            OSError,
            KeyError,
            ValueError,
            RuntimeError,
            jeepney.DBusErrorResponse,
        ) as error:  # no common base class
            _log.info("No notification service: %r", error)
            self.close()

    @Slot()
    def _on_readable(self) -> None:
        with self._closing_on_error(), contextlib.suppress(TimeoutError):  # no more messages
            while self._bus is not None:
                self._handle(self._bus.receive(timeout=0))

    def _handle(self, message: jeepney.Message) -> None:
        types, reply = jeepney.MessageType, jeepney.HeaderFields.reply_serial
        kind, fields, body = message.header.message_type, message.header.fields, message.body
        if kind is types.error:
            _log.info("The notification service returned an error: %s", body)
            self._pending.pop(fields[reply], None)
        elif kind is types.method_return:
            is_wanted = self._pending.pop(fields[reply], None)
            if is_wanted:
                self._shown.add(body[0])
            elif is_wanted is False:
                self._call("CloseNotification", "u", (body[0],))
        elif kind is types.signal and body and body[0] in self._shown:
            self._handle_signal(fields[jeepney.HeaderFields.member], body)

    def _handle_signal(self, signal: str, body: tuple[Any, ...]) -> None:
        if signal == "ActivationToken":  # sent before a click; Wayland raises a window only with it
            os.environ["XDG_ACTIVATION_TOKEN"] = body[1]
        elif signal == "ActionInvoked":
            self.clicked.emit()
        elif signal == "NotificationClosed":
            self._shown.discard(body[0])


class TrayNotifier(Notifier):
    """Shows notifications through a tray icon, which disappears on `withdraw` and on `close`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tray = QSystemTrayIcon(QGuiApplication.windowIcon(), self)
        self._tray.messageClicked.connect(self.clicked)
        self._tray.activated.connect(self.clicked)

    def notify(self, title: str, text: str) -> None:
        """Show the tray icon and its notification."""
        self._tray.setToolTip(title)
        self._tray.show()
        self._tray.showMessage(title, text, QGuiApplication.windowIcon())

    def withdraw(self) -> None:
        """Hide the tray icon."""
        self._tray.hide()

    close = withdraw


def system_notifier(parent: QObject | None = None) -> Notifier:
    return BusNotifier(parent) if sys.platform == "linux" else TrayNotifier(parent)


class RunAnnouncer(QObject):
    """Shows desktop notifications about runs while another program is in front. A click raises the window."""

    def __init__(self, training: CurrentTraining, settings: Settings, window: QWidget, notifier: Notifier) -> None:
        super().__init__(window)
        self._training, self._settings, self._window, self._notifier = training, settings, window, notifier
        self._is_finished = False
        training.event_received.connect(self._on_training_event)
        training.state_changed.connect(self._on_training_changed)
        notifier.clicked.connect(self._on_notification_clicked)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.applicationStateChanged.connect(self._on_application_state_changed)

    @Slot(int, int)
    def on_queue_emptied(self, finished: int, failed: int) -> None:
        """Announce that all queued runs have ended, with the numbers of finished and failed runs."""
        if not finished and not failed:  # the queue was empty
            return
        failures = f", {count(failed, 'run')} ended with an error" if failed else ""
        self._notify("The queue is empty", f"{count(finished, 'run')} finished{failures}.")

    @Slot(object)
    def _on_training_event(self, event: Event) -> None:
        if isinstance(event, RunFinished):
            self._is_finished = event.reason == "finished"  # a run that the user has stopped is not announced
        elif isinstance(event, Blocked):
            self._notify(f"'{self._training.title}' is paused", event.title)

    @Slot()
    def _on_training_changed(self) -> None:
        training = self._training
        if training.state != "idle":
            self._is_finished = False
        elif training.failure is not None:
            self._notify(f"'{training.title}' ended with an error", training.failure.title)
        elif self._is_finished:
            self._notify(f"'{training.title}' has finished", run_texts.state(training))

    def _notify(self, title: str, text: str) -> None:
        is_active = QGuiApplication.applicationState() == Qt.ApplicationState.ApplicationActive
        if self._settings.notifies() and not is_active:
            self._notifier.notify(title, text)

    @Slot()
    def _on_notification_clicked(self) -> None:
        self._window.setWindowState(self._window.windowState() & ~Qt.WindowState.WindowMinimized)
        self._window.show()
        self._window.raise_()
        self._window.activateWindow()

    @Slot(Qt.ApplicationState)
    def _on_application_state_changed(self, state: Qt.ApplicationState) -> None:
        if state == Qt.ApplicationState.ApplicationActive:
            self._notifier.withdraw()


class SleepInhibitor(QObject):
    """Keeps the machine awake while a run trains in this window. Other processes do so for their own runs."""

    def __init__(self, training: CurrentTraining, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._training = training
        self._lock = WakeLock("A run is training.")
        training.state_changed.connect(self._on_training_changed)

    def release(self) -> None:
        self._lock.release()

    @Slot()
    def _on_training_changed(self) -> None:
        if self._training.runs_in_window() and self._training.state != "paused":
            self._lock.acquire()
        else:
            self._lock.release()
