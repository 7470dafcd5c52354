"""Dialog that frees disk space: lists removable files by kind, with sizes, before deleting."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QCheckBox, QLabel, QPlainTextEdit, QProgressBar, QWidget

from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.dialog import Dialog
from studio.app.widgets.layout import SteadyWidth
from studio.core import formatting
from studio.engine.runs.listing import RunSummary
from studio.engine.runs.maintenance.disk_use import CLEANUP_KINDS, Removable, SpaceFound

_LOWEST, _HIGHEST, _LIST_PX = 400, 640, 96  # logical pixels: the dialog's heights, the list's least height
_MOST_OF_A_RUN = 20  # files listed by name


class FreeSpaceDialog(Dialog):
    """Dialog that lists removable files and deletes the checked kinds on a button press."""

    def __init__(self, session: Session, chosen: Sequence[RunSummary], parent: QWidget) -> None:
        super().__init__("Free space", parent)
        self.setMinimumWidth(600)
        self._session, self._space = session, session.run_space
        self._chosen = [run.path for run in chosen]
        self._items: tuple[Removable, ...] = ()
        self.runs = factory.combo("Runs", "Runs to clean up.")
        self.runs.addItem("All runs")
        if chosen:
            self.runs.addItem(f"'{chosen[0].title}'" if len(chosen) == 1 else f"The {len(chosen)} selected runs")
        self.boxes: dict[str, QCheckBox] = {}
        self._sizes: dict[str, QLabel] = {}
        self._parts: dict[str, QWidget] = {}
        self._busy = QProgressBar(minimum=0, maximum=0, textVisible=False)
        self._note = factory.caption("")
        self._list = QPlainTextEdit(readOnly=True, lineWrapMode=QPlainTextEdit.LineWrapMode.NoWrap)
        free, slot = "Delete the checked items permanently.", self._on_free_clicked
        self.free = factory.button("Free space", free, "trash", "danger", slot)
        SteadyWidth(self.free, "Free space", "Free 888.8 GB")
        self.cancel = factory.button("Close", "Close without deleting.", slot=self.reject)
        self._lay_out()
        self.resize(self.minimumWidth(), max(_LOWEST, min(_HIGHEST, parent.window().height())))
        self.runs.currentIndexChanged.connect(self._find_removable)
        self._space.found.connect(self._on_found)
        self._space.freed.connect(self.accept)  # the window shows how much was freed
        self._space.ended.connect(self._refresh)
        self._find_removable()

    def _lay_out(self) -> None:
        factory.retain_size_when_hidden(self._busy)
        kinds = factory.column(spacing=2 * factory.GRID)
        for kind in CLEANUP_KINDS:
            box, size = factory.check_box(kind.title, kind.loses), factory.text("", wrap=False)
            about = factory.caption(kind.loses)
            box.setChecked(kind.is_usual)
            box.toggled.connect(self._refresh)
            about.setContentsMargins(3 * factory.GRID, 0, 0, 0)
            part = factory.panel(factory.column(factory.row(box, 1, size), about, spacing=2))
            kinds.addWidget(part)
            self.boxes[kind.name], self._sizes[kind.name], self._parts[kind.name] = box, size, part
        self._list.setMinimumHeight(_LIST_PX)
        factory.set_name_and_tip(self._list, "Will be deleted", "Files to delete, by run.")
        head = factory.row(factory.title("Free space"), 1, self.runs)
        content = factory.column(kinds, factory.heading("Will be deleted"), self._list, margin=2, grows=2)
        foot = factory.row(self._note, self.cancel, self.free, grows=0)
        scroll = factory.scroll_area(factory.panel(content))
        self.setLayout(factory.column(head, self._busy, scroll, foot, margin=3 * factory.GRID))

    def checked_items(self) -> list[Removable]:
        """Return the items to delete."""
        return [item for item in self._items if self.boxes[item.kind].isChecked()]

    @Slot()
    def _find_removable(self) -> None:
        self._items = ()
        is_all = self.runs.currentIndex() == 0
        paths = [run.path for run in self._session.runs.runs] if is_all else self._chosen
        self._space.find(paths, with_cache=is_all)
        self._refresh()

    @Slot(object)
    def _on_found(self, found: SpaceFound) -> None:
        self._items = found.items
        names = ", ".join(f"'{self._session.runs.title_of(path)}'" for path in found.busy)
        self._note.setText(f"Skipped because they are training: {names}." if names else "")
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        self._busy.setVisible(self._space.is_busy())
        for kind in CLEANUP_KINDS:
            own = [item for item in self._items if item.kind == kind.name]
            self._parts[kind.name].setVisible(bool(own))
            self._sizes[kind.name].setText(formatting.memory(_bytes_of(own)))
        checked = self.checked_items()
        reason = "" if checked else "Nothing to delete."
        factory.set_enabled(self.free, "Please wait…" if self._space.is_busy() else reason)
        size = f"Free {formatting.memory(_bytes_of(checked))}" if checked else "Free space"
        factory.set_button_text(self.free, size)
        nothing = "" if self._space.is_busy() or self._items else "Nothing to delete."
        self._list.setPlainText("\n".join(self._lines(checked)) or nothing)

    @Slot()
    def _on_free_clicked(self) -> None:
        self._space.free(self.checked_items())
        self._refresh()

    def _lines(self, checked: Sequence[Removable]) -> Iterator[str]:
        """Yield a line for each run, followed by lines for its files."""
        by_run: dict[Path | None, list[Removable]] = {}
        for item in checked:
            by_run.setdefault(item.run, []).append(item)
        for run, items in by_run.items():
            name = self._session.runs.title_of(run) if run is not None else "Shared cache"
            yield f"{name}: {formatting.memory(_bytes_of(items))}"
            for item in items[:_MOST_OF_A_RUN]:
                yield f"    {item.path.name}  {formatting.memory(item.size_bytes)}"
            if len(items) > _MOST_OF_A_RUN:
                yield f"    and {len(items) - _MOST_OF_A_RUN:,} more"


def _bytes_of(items: Iterable[Removable]) -> int:
    return sum(item.size_bytes for item in items)
