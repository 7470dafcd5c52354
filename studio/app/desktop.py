"""What the window asks of the desktop while nobody looks at it: to tell of runs that have ended, and to stay awake.

On Linux notifications go over D-Bus to whatever shows them there. Qt itself would send them through a tray icon, which
GNOME does not show, and PySide's QtDBus can't write the unsigned number that `Notify` takes. Elsewhere a tray icon
sends them. Where nothing shows them, nothing happens.
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

from studio.app.pages import run_texts
from studio.app.state.settings import Settings
from studio.app.state.training.training import CurrentTraining
from studio.core import paths
from studio.core.events import Blocked, Event, RunFinished
from studio.core.formatting import count
from studio.core.wake_lock import WakeLock

if TYPE_CHECKING:
    from jeepney import Message
    from jeepney.io.blocking import DBusConnection

_log = logging.getLogger(__name__)
_SERVICE, _PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
_CLICK = "default"  # the action of a notification as a whole


class Notifier(QObject):
    """Shows notifications of the system; this one shows none. clicked: the user has clicked one."""

    clicked = Signal()

    def notify(self, title: str, text: str) -> None:
        """Show a notification, where the system lets one."""

    def withdraw(self) -> None:
        """Take back what is shown: the user has come."""

    def close(self) -> None:
        """The studio ends."""


class BusNotifier(Notifier):
    """Shows notifications by org.freedesktop.Notifications of D-Bus; it connects for the first one."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._bus: DBusConnection | None = None
        self._readable: QSocketNotifier | None = None
        self._asked: dict[int, bool] = {}  # by serial of a Notify call without an answer: still wanted?
        self._shown: set[int] = set()  # ids of the notifications on show

    def notify(self, title: str, text: str) -> None:
        """Ask for a notification. What comes of it is heard later: nothing waits for the desktop."""
        icon = (paths.assets() / "icons" / "app.svg").as_uri()
        hints = {"desktop-entry": ("s", QGuiApplication.desktopFileName())}
        name, body = QGuiApplication.applicationName(), html.escape(text, quote=False)
        with self._giving_up_bus():
            if self._bus is None:
                self._connect()
            values = (name, 0, icon, title, body, [_CLICK, "Show"], hints, -1)
            self._asked[self._call("Notify", "susssasa{sv}i", values)] = True

    def withdraw(self) -> None:
        """Close the notifications on show, and close each notification without an id once the id arrives."""
        self._asked = dict.fromkeys(self._asked, False)
        if not self._shown:
            return
        with self._giving_up_bus():
            for number in self._shown:
                self._dismiss(number)
        self._shown.clear()

    def close(self) -> None:
        """End the connection."""
        if self._readable is not None:
            self._readable.setEnabled(False)
            self._readable.deleteLater()
        if self._bus is not None:
            self._bus.close()
        self._bus = self._readable = None
        self._asked.clear()
        self._shown.clear()

    def _connect(self) -> None:
        from jeepney import MatchRule, message_bus
        from jeepney.io.blocking import open_dbus_connection

        self._bus = open_dbus_connection("SESSION")
        self._bus.send(message_bus.AddMatch(MatchRule(type="signal", interface=_SERVICE, path=_PATH)))
        self._readable = QSocketNotifier(self._bus.sock.fileno(), QSocketNotifier.Type.Read, self)
        self._readable.activated.connect(self._receive)

    def _call(self, method: str, signature: str, values: tuple[Any, ...]) -> int:
        """Send a call and return its serial."""
        from jeepney import DBusAddress, new_method_call

        assert self._bus is not None
        serial: int = next(self._bus.outgoing_serial)
        self._bus.send(new_method_call(DBusAddress(_PATH, _SERVICE, _SERVICE), method, signature, values), serial)
        return serial

    def _dismiss(self, number: int) -> None:
        self._call("CloseNotification", "u", (number,))

    @contextlib.contextmanager
    def _giving_up_bus(self) -> Iterator[None]:
        """A bus that is not there, or no longer, is no error: the next notification looks for it again."""
        from jeepney import DBusErrorResponse

        try:
            yield
        except (OSError, KeyError, ValueError, RuntimeError, DBusErrorResponse) as error:  # they have no base in common
            _log.info("There is no desktop to notify: %r", error)
            self.close()

    @Slot()
    def _receive(self) -> None:
        with self._giving_up_bus(), contextlib.suppress(TimeoutError):  # nothing more has come
            while self._bus is not None:
                self._take(self._bus.receive(timeout=0))

    def _take(self, message: Message) -> None:
        from jeepney import HeaderFields, MessageType

        kind, fields, body = message.header.message_type, message.header.fields, message.body
        if kind is MessageType.error:
            _log.info("The desktop does not do what it is asked: %s", body)
            self._asked.pop(fields[HeaderFields.reply_serial], None)
        elif kind is MessageType.method_return:
            is_wanted = self._asked.pop(fields[HeaderFields.reply_serial], None)
            if is_wanted:
                self._shown.add(body[0])
            elif is_wanted is False:
                self._dismiss(body[0])
        elif kind is MessageType.signal and body and body[0] in self._shown:
            self._heed(fields[HeaderFields.member], body)

    def _heed(self, signal: str, body: tuple[Any, ...]) -> None:
        """What has become of one of its notifications."""
        if signal == "ActivationToken":  # comes before a click: with it alone Wayland lets a window come forward
            os.environ["XDG_ACTIVATION_TOKEN"] = body[1]
        elif signal == "ActionInvoked":
            self.clicked.emit()
        elif signal == "NotificationClosed":
            self._shown.discard(body[0])


class TrayNotifier(Notifier):
    """Shows notifications beside a tray icon, which is there until the user comes."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._tray = QSystemTrayIcon(QGuiApplication.windowIcon(), self)
        self._tray.messageClicked.connect(self.clicked)
        self._tray.activated.connect(self._click)

    def notify(self, title: str, text: str) -> None:
        """Show the icon and, beside it, the notification."""
        self._tray.setToolTip(title)
        self._tray.show()
        self._tray.showMessage(title, text, QGuiApplication.windowIcon())

    def withdraw(self) -> None:
        """Remove the icon."""
        self._tray.hide()

    def close(self) -> None:
        """Remove the icon."""
        self._tray.hide()

    @Slot()
    def _click(self) -> None:
        self.clicked.emit()


def system_notifier(parent: QObject | None = None) -> Notifier:
    """What shows notifications on this system."""
    return BusNotifier(parent) if sys.platform == "linux" else TrayNotifier(parent)


class RunAnnouncer(QObject):
    """Tells by notifications of the system what has become of runs while another program is in front.

    A click on one brings the window to the front. That a run was stopped is no news: somebody has just asked for it.
    """

    def __init__(self, training: CurrentTraining, settings: Settings, window: QWidget, notifier: Notifier) -> None:
        super().__init__(window)
        self._training, self._settings, self._window, self._notifier = training, settings, window, notifier
        self._is_finished = False
        training.event_received.connect(self._hear)
        training.state_changed.connect(self._follow)
        notifier.clicked.connect(self._bring_forward)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.applicationStateChanged.connect(self._look)

    @Slot(int, int)
    def on_queue_emptied(self, finished: int, failed: int) -> None:
        """No run waits any more; of those that did, so many were finished and so many ended with an error."""
        if not finished and not failed:  # there was none
            return
        also = f", {count(failed, 'run')} ended with an error" if failed else ""
        self._say("The queue is empty", f"{count(finished, 'run')} finished{also}.")

    @Slot(object)
    def _hear(self, event: Event) -> None:
        if isinstance(event, RunFinished):
            self._is_finished = event.reason == "finished"
        elif isinstance(event, Blocked):
            self._say(f"'{self._training.title}' waits for you", event.title)

    @Slot()
    def _follow(self) -> None:
        training = self._training
        if training.state != "idle":
            self._is_finished = False
        elif training.failure is not None:
            self._say(f"'{training.title}' ended with an error", training.failure.title)
        elif self._is_finished:
            self._say(f"'{training.title}' is trained", run_texts.state(training))

    def _say(self, title: str, text: str) -> None:
        is_active = QGuiApplication.applicationState() == Qt.ApplicationState.ApplicationActive
        if self._settings.notifies() and not is_active:
            self._notifier.notify(title, text)

    @Slot()
    def _bring_forward(self) -> None:
        self._window.setWindowState(self._window.windowState() & ~Qt.WindowState.WindowMinimized)
        self._window.show()
        self._window.raise_()
        self._window.activateWindow()

    @Slot(Qt.ApplicationState)
    def _look(self, state: Qt.ApplicationState) -> None:
        if state == Qt.ApplicationState.ApplicationActive:
            self._notifier.withdraw()


class SleepInhibitor(QObject):
    """Holds off the machine's sleep while a run trains here, but not while it is paused; other processes do so
    themselves.
    """

    def __init__(self, training: CurrentTraining, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._training = training
        self._lock = WakeLock("A run is being trained.")
        training.state_changed.connect(self._follow)

    def end(self) -> None:
        """Let the machine sleep."""
        self._lock.release()

    @Slot()
    def _follow(self) -> None:
        if self._training.runs_in_window() and self._training.state != "paused":
            self._lock.acquire()
        else:
            self._lock.release()
