"""The settings of the window: theme, device, runs folder, notifications, saved images and keys."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QGridLayout, QTabWidget, QWidget

from studio.app.shortcuts import ShortcutList
from studio.app.state.session import Session
from studio.app.theme import Theme
from studio.app.widgets import factory
from studio.app.widgets.dialog import Dialog
from studio.app.widgets.path_field import PathField
from studio.core import paths

_SCHEMES = (("Follow system", "system"), ("Light", "light"), ("Dark", "dark"))
_RUNS = "Folder for new runs. Leave it empty for the usual folder."
_RUNS_NOTE = "New runs go here. Existing runs stay in place and stay listed."
_DEVICE = "Device that trains, generates and exports."
_SEARCHING = "Searching for devices…"
_BUSY = "Stop the current training first."
_NOTIFY = "Show a desktop notification when a run ends while another program is in front."
_DETAILS = "Write the model, the seed and the training data into saved images."
_LABEL_WIDTH = 128


class SettingsDialog(Dialog):
    """The settings of the window, in two tabs. Each change is applied and stored at once."""

    def __init__(self, session: Session, theme: Theme, parent: QWidget) -> None:
        super().__init__("Settings", parent)
        self._session, self._theme = session, theme
        settings = session.settings
        self.theme = factory.combo("Theme", "Colours of the window.")
        self.device = factory.combo("Device", _DEVICE)
        self.runs_folder = PathField("folder")
        self.runs_error = factory.FieldError(self.runs_folder.line, _RUNS)
        self.notifies = factory.check_box("Notify when a run ends", _NOTIFY)
        self.saves_details = factory.check_box("Write generation details into saved images", _DETAILS)
        self.shortcuts = ShortcutList()
        self.tabs = QTabWidget()
        factory.name_tabs(self.tabs, "Settings tabs", "Switch between settings and keys.")
        factory.set_name_and_tip(self.runs_folder.line, "Runs folder", _RUNS)
        self.runs_folder.line.setPlaceholderText(str(paths.default_runs()))
        factory.fill_combo(self.theme, _SCHEMES, settings.scheme())
        self.notifies.setChecked(settings.notifies())
        self.saves_details.setChecked(settings.saves_details())
        self.tabs.addTab(self._general(), "General")
        self.tabs.addTab(factory.panel(factory.column(self.shortcuts, margin=2 * factory.GRID)), "Keys")
        close = factory.button("Close", "Close the settings. (Esc)", slot=self.accept)
        close.setAutoDefault(False)  # Enter in the field for the folder must not close the dialog
        foot = factory.row(factory.caption("Changes apply at once."), close, grows=0)
        self.setLayout(factory.column(self.tabs, foot, margin=2 * factory.GRID))
        self.resize(640, 520)  # fits into the smallest window
        self._show_runs_folder()
        self._refresh_devices()
        self.theme.currentIndexChanged.connect(self._on_theme_chosen)
        self.device.currentIndexChanged.connect(self._on_device_chosen)
        self.runs_folder.finished.connect(self._on_runs_folder_edited)
        self.notifies.toggled.connect(self._on_notifies_toggled)
        self.saves_details.toggled.connect(self._on_saves_details_toggled)
        for changed in (session.catalog.devices_found, session.device_choice.changed, session.training.state_changed):
            changed.connect(self._refresh_devices)

    def show_keys(self) -> None:
        """Show the tab of keyboard shortcuts."""
        self.tabs.setCurrentIndex(1)
        self.shortcuts.search.setFocus()

    def _general(self) -> QWidget:
        rows = QGridLayout()
        rows.setHorizontalSpacing(2 * factory.GRID)
        rows.setVerticalSpacing(factory.GRID)
        rows.setColumnMinimumWidth(0, _LABEL_WIDTH)
        rows.setColumnStretch(1, 1)
        note = factory.caption(_RUNS_NOTE)
        fields: tuple[tuple[str, QWidget, tuple[QWidget, ...]], ...] = (
            ("Theme", self.theme, ()),
            ("Device", self.device, ()),
            ("Runs folder", self.runs_folder, (self.runs_error, note)),
        )
        for label, field, below in fields:
            heading = factory.text(label, wrap=False)
            heading.setBuddy(field)
            row = rows.rowCount()
            rows.addWidget(heading, row, 0)
            rows.addWidget(field, row, 1)
            for offset, widget in enumerate(below, 1):
                rows.addWidget(widget, row + offset, 1)
        boxes = factory.column(self.notifies, self.saves_details)
        return factory.panel(factory.column(rows, boxes, 1, margin=2 * factory.GRID, spacing=2 * factory.GRID))

    @Slot()
    def _on_theme_chosen(self) -> None:
        scheme = self.theme.currentData()
        self._session.settings.set_text("scheme", scheme)
        self._theme.set_scheme(scheme)

    @Slot(bool)
    def _on_notifies_toggled(self, notifies: bool) -> None:
        self._session.settings.set_notifies(notifies)

    @Slot(bool)
    def _on_saves_details_toggled(self, saves: bool) -> None:
        self._session.settings.set_saves_details(saves)

    @Slot()
    def _on_device_chosen(self) -> None:
        self._session.device_choice.choose(self.device.currentData())
        self._session.device_choice.store()

    @Slot()
    def _refresh_devices(self) -> None:
        """List the working devices and show the chosen one. A running training keeps its device."""
        catalog, chosen = self._session.catalog, self._session.device_choice.device
        working = [device for device in catalog.devices if not device.problem]
        texts = [(f"{one.name} (fastest)" if one.id == catalog.fastest else one.name, one.id) for one in working]
        factory.fill_combo(self.device, texts or [(_SEARCHING, "")], chosen.id if chosen is not None else "")
        factory.set_enabled(self.device, _BUSY if self._session.training.owns_run() else "" if working else _SEARCHING)

    @Slot()
    def _on_runs_folder_edited(self) -> None:
        """Use the typed folder for new runs; if impossible, show why at the field."""
        folder = self.runs_folder.path() if self.runs_folder.text().strip() else paths.default_runs()
        reason = self._session.runs.choose_folder(folder)
        self.runs_error.show_reason(reason)
        if not reason:
            self._show_runs_folder()

    def _show_runs_folder(self) -> None:
        chosen = paths.runs()
        self.runs_folder.set_text("" if chosen == paths.default_runs() else str(chosen))
