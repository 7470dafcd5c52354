"""The bar for changed import settings: a preview of sprites before and after, Apply and Discard."""

from PySide6.QtCore import Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame

from studio.app import theme
from studio.app.pages.sprites.summary import ImportSummary
from studio.app.state.sprites.import_preview import ImportPreviewer
from studio.app.state.sprites.sprites import OpenSprites
from studio.app.widgets import factory
from studio.app.widgets.sprites.before_after import BeforeAfter
from studio.core.formatting import count, number
from studio.data.doctor.preview import describe_change
from studio.data.importing.import_preview import MOST_EXAMPLES, ImportPreviewed
from studio.data.options import ImportOptions

_SIDE = 64  # width of a picture in logical pixels
_TEXT_WIDTH = 180
_NO_PIXELS = "Apply imports the files again."
_COMPARING = "Comparing sprites…"


class ChangedSettingsBar(QFrame):
    """A bar for changed import settings. Appears while the form's settings differ from the open sprites' settings."""

    def __init__(self, summary: ImportSummary, open_sprites: OpenSprites, previewer: ImportPreviewer) -> None:
        super().__init__()
        self._summary, self._open_sprites, self._previewer = summary, open_sprites, previewer
        self._examples = 0  # pairs to show, if there is room
        theme.set_role(self, "card")
        self.pairs = tuple(BeforeAfter() for _ in range(MOST_EXAMPLES))
        self._title, self._facts = factory.text("Changed settings", "heading"), factory.text("", "muted")
        tip = "Import again with these settings. Your files are not changed."
        self.apply = factory.button("Apply", tip, role="primary", slot=self._on_apply_clicked)
        self.discard = factory.button(
            "Discard", "Show the settings of the open sprites again.", slot=self._on_discard_clicked
        )
        self._facts.setMinimumHeight(2 * self._facts.fontMetrics().lineSpacing())  # equal height for one or two lines
        words = factory.panel(factory.column(self._title, self._facts, 1, factory.row(self.apply, self.discard, 1)))
        words.setMinimumWidth(_TEXT_WIDTH)
        self.setLayout(factory.row(words, *self.pairs, spacing=2 * factory.GRID, margin=factory.GRID, grows=0))
        for pair in self.pairs:
            pair.set_side(_SIDE)
        summary.options_edited.connect(self._refresh)
        open_sprites.ended.connect(self._refresh)
        previewer.previewed.connect(self._on_previewed)
        self.hide()

    @Slot()
    def _refresh(self) -> None:
        """Show the bar while the settings of the form differ from the options of the latest import."""
        options = self._summary.edited_options()
        if options == self._open_sprites.latest.options:
            self._close()
        else:
            self._show_change(options, self._summary.form.problem())

    def _show_change(self, options: ImportOptions | None, problem: str) -> None:
        """Show the bar for changed options, and preview them; None for an invalid value, described by `problem`."""
        factory.set_enabled(self.apply, problem)
        self._show_pairs(0)
        if options is None:
            self._previewer.cancel()
            self._facts.setText(problem)
        else:
            self._facts.setText(_COMPARING if self._previewer.request(options) else _NO_PIXELS)
        self.show()

    def facts(self) -> str:
        """Return the line about the preview."""
        return self._facts.text()

    def _close(self) -> None:
        """Hide the bar and cancel the preview."""
        self._previewer.cancel()
        self.hide()

    @Slot()
    def _on_apply_clicked(self) -> None:
        self._summary.apply_options()
        if self._open_sprites.is_busy():
            self._close()

    @Slot()
    def _on_discard_clicked(self) -> None:
        self._summary.form.set_config(self._open_sprites.options)
        self._close()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_pairs(self._examples)

    @Slot(object)
    def _on_previewed(self, preview: ImportPreviewed) -> None:
        for pair, example in zip(self.pairs, preview.examples, strict=False):
            words = describe_change(example.before, example.after, example.changed)
            pair.set_pair(example.before, example.after, f"{example.name}: {words}")
            pair.setToolTip(f"{example.name}: {words}")
        self._facts.setText(_describe(preview))
        self._show_pairs(len(preview.examples))

    def _show_pairs(self, examples: int) -> None:
        """Show the examples that fit beside the text."""
        self._examples = examples
        width = self.pairs[0].sizeHint().width() + 2 * factory.GRID
        fitting = (self.width() - _TEXT_WIDTH - 2 * factory.GRID) // width
        for position, pair in enumerate(self.pairs):
            pair.setVisible(position < min(examples, max(1, fitting)))


def _describe(preview: ImportPreviewed) -> str:
    """Describe a preview: '812 of 950 sprites change, 3 are excluded.'"""
    if preview.problem:
        return preview.problem
    facts = [f"{number(preview.changed)} of {count(preview.total, 'sprite')} change"]
    if not preview.is_done:
        facts = [f"{number(preview.changed)} of the first {number(preview.compared)} sprites change"]
    if preview.excluded:
        facts.append(f"{number(preview.excluded)} are excluded")
    if preview.added:
        facts.append(f"{number(preview.added)} are added")
    before, after = preview.sizes
    if before != after:
        facts.append(f"canvas {before} → {after} px")
    return f"{', '.join(facts)}{'.' if preview.is_done else '…'}"
