"""Help > System check: the findings about this computer, and the commands for another build of PyTorch."""

from __future__ import annotations

from PySide6.QtCore import QProcess, Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QWidget

from studio.app import theme
from studio.app.background.job_queue import JobQueue
from studio.app.background.worker import Job, JobEnded
from studio.app.widgets import factory
from studio.app.widgets.dialog import Dialog
from studio.app.widgets.input import NoSecondPress
from studio.app.widgets.layout import SteadyWidth
from studio.core.events import Event, Progress
from studio.core.shell import command_line
from studio.engine.check import torch_change
from studio.engine.check.checking import check_system
from studio.engine.check.findings import BuildChosen, CheckDone, Finding, report
from studio.installing.setup import gigabytes
from studio.installing.torch_builds import Build

_ICONS = {"good": "check", "notice": "warning", "problem": "error"}
_NAMES = {"good": "Good", "notice": "Notice", "problem": "Problem"}
_ORDER = {"problem": 0, "notice": 1, "good": 2}
_CHANGE = "Change PyTorch build…"
_CODE_PX = 120  # logical pixels: the least height of the commands


class CheckDialog(Dialog):
    """Runs the system check and lists each new finding. Closing the dialog cancels the check."""

    def __init__(self, job_queue: JobQueue, parent: QWidget) -> None:
        super().__init__("System check", parent)
        self._job_queue = job_queue
        self._job: Job | None = None
        self._chosen = BuildChosen("", "")
        self.findings: list[Finding] = []
        self.verdict = factory.elided_title()
        self.progress = factory.ProgressBar("Progress of the system check.")
        self.what = factory.ElidedLabel("muted")
        self._rows = factory.column(spacing=2 * factory.GRID)
        self.change = factory.button(
            _CHANGE, "Show the commands for another build of PyTorch.", slot=self._on_change_clicked
        )
        tip = "Copy the findings as text, without your name and folders."
        self.copy_button = factory.button("Copy", tip, "copy", slot=self._on_copy_clicked)
        self.again = factory.button("Cancel", "Cancel the check, or check again.", slot=self._on_again_clicked)
        SteadyWidth(self.again, "Cancel", "Check again")
        NoSecondPress(self.again, lambda: self._job is not None)
        self.close_button = factory.button("Close", "Close this window.", role="primary", slot=self.reject)
        self.close_button.setDefault(True)
        self._lay_out()
        self.close_button.setFocus()
        self.finished.connect(self._abandon)
        self._start()

    def _lay_out(self) -> None:
        factory.retain_size_when_hidden(self.progress)
        area = factory.scroll_area(factory.panel(factory.column(self._rows, 1, margin=2)), "Findings")
        foot = factory.row(self.change, 1, self.copy_button, self.again, self.close_button)
        column = factory.column(
            self.verdict, self.progress, self.what, area, foot, margin=3 * factory.GRID, grows=3
        )  # fmt: skip
        self.setLayout(column)
        self.resize(680, 520)

    def _start(self) -> None:
        self.findings = []
        factory.clear(self._rows)
        self.verdict.show_text("Checking…")
        self.what.show_text("Waiting for other jobs")
        self.progress.show_busy()
        self._job = self._job_queue.start(
            "files", "System check", check_system, self._on_event, background=True, cancellable=True
        )
        self._refresh()

    def _refresh(self) -> None:
        is_busy = self._job is not None
        self.progress.setVisible(is_busy)
        factory.set_button_text(self.again, "Cancel" if is_busy else "Check again")
        factory.set_enabled(self.copy_button, "" if self.findings else "The check has found nothing yet.")

    def _on_event(self, event: Event) -> None:
        match event:
            case Progress():
                self.what.show_text(event.text())
            case BuildChosen():
                self._chosen = event
            case Finding():
                self._add(event)
            case CheckDone():
                self.verdict.show_text(event.as_text())
            case JobEnded():
                self._job = None
                if event.outcome != "done":
                    self.verdict.show_text("The check was cancelled." if event.outcome == "cancelled" else "Failed.")
                self.what.show_text("")
        self._refresh()

    def _add(self, finding: Finding) -> None:
        self.findings.append(finding)
        colours = theme.colours()
        levels = {"good": colours.muted, "notice": colours.warn, "problem": colours.error}
        mark = QLabel(pixmap=theme.icon(_ICONS[finding.state], levels[finding.state]).pixmap(20, 20))
        factory.set_name_and_tip(mark, _NAMES[finding.state], _NAMES[finding.state])
        labels = [factory.text(finding.title, "heading"), factory.text(finding.text)]
        if finding.advice:
            labels.append(factory.caption(finding.advice))
        for label in labels[1:]:
            label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        line = factory.row(mark, factory.column(*labels, spacing=2), grows=1)
        line.setAlignment(mark, Qt.AlignmentFlag.AlignTop)
        above = sum(_ORDER[each.state] <= _ORDER[finding.state] for each in self.findings[:-1])
        self._rows.insertWidget(above, factory.panel(line))  # problems first

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(report(self.findings))

    @Slot()
    def _on_again_clicked(self) -> None:
        if self._job is None:
            self._start()
        else:
            self._job_queue.cancel(self._job)

    @Slot()
    def _on_change_clicked(self) -> None:
        BuildDialog(self._chosen, self).open()

    @Slot()
    def _abandon(self) -> None:
        self._job_queue.abandon(self._job)
        self._job = None


class BuildDialog(Dialog):
    """Installs another build of PyTorch: with the launcher that installed the studio, else with commands to copy."""

    def __init__(self, chosen: BuildChosen, parent: QWidget) -> None:
        super().__init__("Change PyTorch build", parent)
        self._builds = torch_change.available_builds()
        installed = next((each.title for each in self._builds if each.name == chosen.installed), chosen.installed)
        self.build = factory.combo("Build", "The build of PyTorch to install.")
        factory.fill_combo(self.build, [(each.title, each.name) for each in self._builds], chosen.suggested)
        self.about = factory.caption("")
        self.commands = factory.code_view("Commands", "Commands for a terminal.")
        self.commands.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self.commands.setMinimumHeight(_CODE_PX)
        role: theme.Role = "" if torch_change.launcher() else "primary"
        self.copy_button = factory.button("Copy", "Copy the commands.", "copy", role, self._on_copy_clicked)
        tip = "Open the window that fetches and installs this build."
        self.set_up = factory.button("Set up…", tip, role="primary", slot=self._on_set_up_clicked)
        self.set_up.setVisible(torch_change.launcher() is not None)
        close = factory.button("Close", "Close this window.", slot=self.reject)
        now = f"Installed: {installed}." if installed else "The installed build is unknown."
        suggested = next((each.title for each in self._builds if each.name == chosen.suggested), "")
        fits = f" For this computer: {suggested}." if suggested else ""
        steps = "Close the studio, then run these commands in a terminal. They fetch packages from the network."
        if torch_change.launcher():
            steps = "'Set up…' opens a window; afterwards, restart the studio. The same from a terminal:"
        self.setLayout(
            factory.column(
                factory.title("Change PyTorch build"), factory.text(f"{now}{fits}"), self.build, self.about,
                factory.text(steps), self.commands, factory.row(1, self.copy_button, self.set_up, close),
                margin=3 * factory.GRID, grows=5,
            )
        )  # fmt: skip
        self.resize(640, 400)
        self.build.currentIndexChanged.connect(self._refresh)
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        name = self.build.currentData()
        build = next((each for each in self._builds if each.name == name), None)
        self.about.setText(_about(build) if build else "PyTorch has no build for this system.")
        self.commands.setPlainText(
            "\n".join(command_line(*words) for words in torch_change.change_commands(name or ""))
        )
        for button in (self.copy_button, self.set_up):
            factory.set_enabled(button, "" if build else "PyTorch has no build for this system.")

    @Slot()
    def _on_copy_clicked(self) -> None:
        QGuiApplication.clipboard().setText(self.commands.toPlainText())

    @Slot()
    def _on_set_up_clicked(self) -> None:
        program, *words = torch_change.setup_command(self.build.currentData())
        if QProcess.startDetached(program, words)[0]:
            self.accept()
        else:
            self.about.setText("The window can't be opened. Run the command in a terminal.")


def _about(build: Build) -> str:
    """Describe a build: size, index, and whether the studio's makers have tried the build."""
    source = "from the package index" if build.on_index else "from PyTorch's index"
    tried = "" if build.tried else " Not tried by the makers of the studio."
    return f"Fetches about {gigabytes(build.download)} {source} and takes {gigabytes(build.disk)} on the disk.{tried}"
