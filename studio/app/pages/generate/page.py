"""The Generate page: choose a model, generate sprites, edit and save them."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QMimeData, Qt, Slot
from PySide6.QtGui import QAction, QResizeEvent, QShortcut
from PySide6.QtWidgets import QComboBox, QSplitter, QStackedWidget, QWidget

from studio.app import keys
from studio.app.pages.base import Page
from studio.app.pages.generate.drawing import DrawController
from studio.app.pages.generate.editing import EditorPanel
from studio.app.pages.generate.editor_splitter import EditorSplitter
from studio.app.pages.generate.neighbours import NeighboursPanel
from studio.app.pages.generate.predict import PredictPanel
from studio.app.pages.generate.recolouring import ResultRecolourer
from studio.app.pages.generate.request import RequestPanel
from studio.app.pages.generate.results import Results
from studio.app.pages.generate.saving import ResultSaver
from studio.app.pages.generate.sets.panel import SetsPanel
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.editor.editor import SpriteEditor
from studio.app.widgets.input import ListSearch, NoSecondPress
from studio.app.widgets.menu import set_keys

_ROOM_FOR_ALL = 1400  # logical pixels; a narrower page hides its form while the editor is open
_THUMBNAIL = "generate_thumbnail"  # settings key: side of a thumbnail in logical pixels
_TIP = "Generate sprites with these settings."
_VIEWS = {"sprites": 0, "sets": 2}  # index of the right-hand view, by the model's `makes`; 1 for predictions
_MODEL = "generate_model"  # settings key: the last used run


class GeneratePage(Page):
    """Left: the model and the request. Right: results and editor, or predictions for a model that does not draw."""

    topic = "generate"

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.history = session.generate_history
        self.choice = ModelChoice(session, before=session.settings.text(_MODEL))
        self.request = RequestPanel(session, self.choice)
        self.neighbours = NeighboursPanel(session.inference)
        self.results = Results(session.kept_sprites, session.generate_history, session.drag_files, self.neighbours)
        self.editing = EditorPanel(session)
        self.predict = PredictPanel(session, self.choice)
        self.drawing = DrawController(session, self.choice, self.request, self.results, self.editing)
        self._sets: SetsPanel | None = None
        self.generate = factory.button("Generate", _TIP, "generate", "primary", self._on_generate_clicked)
        self.cancel = factory.button("Cancel", "Stop generating.", slot=session.inference.cancel)
        NoSecondPress(self.cancel)
        self._reason = factory.text("", "muted")
        self._bar = factory.ProgressBar()
        self._form, self._right = QWidget(), QStackedWidget()
        self._drawn = EditorSplitter(session.settings, self.editing, self.results)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        thumbnail = session.settings.text(_THUMBNAIL)
        if thumbnail.isdecimal():
            self.results.grid.zoom.set_thumbnail(int(thumbnail))
        self._again = QAction("Generate again", self)
        self._again.triggered.connect(self.drawing.draw_again)
        set_keys(self._again, self.results, "draw_again")
        self.editing.addAction(self._again)
        self.saver = ResultSaver(self, session, self.results)
        self.recolourer = ResultRecolourer(self, session, self.results)
        self._editor_keys = _editor_keys(self, self.editing.editor)
        self._cell_keys: list[QShortcut] = []
        self._lay_out()
        self._connect()
        self._refresh()

    @property
    def sets(self) -> SetsPanel:
        """The panel for a model of sets, created when first needed: it would take a twentieth of the window's start."""
        if self._sets is None:
            self._sets = SetsPanel(self.session, self.choice, self.request, self.drawing)
            self._cell_keys = _editor_keys(self, self._sets.editing.editor)
            self._add_view(self._sets.area)
            self._sets.editing.show_form.toggled.connect(self._fold_form)
            self._sets.editing.changed.connect(self._refresh)
        return self._sets

    def save_state(self) -> None:
        self.request.save_state()
        model = self.choice.run()
        if model is not None:
            self.session.settings.set_text(_MODEL, str(model))
        self.session.settings.set_text(_THUMBNAIL, str(self.results.grid.zoom.thumbnail))
        self.session.settings.set_layout("generate", self._splitter.saveState())
        self._drawn.save_state()
        if self._sets is not None:
            self._sets.save_state()
        self.session.editing.store()
        self.session.characters.store()
        self.session.given_tiles.store()
        self.session.kept_sprites.store()

    def before_show(self) -> None:
        """List the runs again, since the command line may have added some."""
        self.session.runs.list_runs()

    def show_run(self, path: Path, checkpoint: str = "") -> None:
        """Choose this run's model and, unless empty, a checkpoint."""
        self.choice.choose(path, checkpoint)

    @Slot()
    def save_samples(self) -> bool:
        """Save the selected results, or all, in one file. Return False without results."""
        if self._makes() == "sets":
            return self.sets.save_samples()
        return self.saver.save_one_file()

    def _connect(self) -> None:
        models = self.session.inference
        self.results.buttons.save_sheet.clicked.connect(self.save_samples)
        self.choice.changed.connect(self._refresh)
        self.results.buttons.open.clicked.connect(self.editing.browse)
        self.results.buttons.new_sprite.clicked.connect(self.editing.open_blank)
        self.results.grid.activated.connect(self._on_sprite_activated)
        self.results.buttons.edit.clicked.connect(self.drawing.edit_selected)
        self.results.buttons.frame_counts.triggered.connect(self.drawing.draw_between)
        self.results.buttons.like.clicked.connect(self.drawing.draw_like)
        self.results.dragger.failed.connect(self.session.show_error)
        self.results.grid.selection_changed.connect(self._on_selection_changed)
        self.editing.draw.clicked.connect(self.drawing.draw_from_sprite)
        self.editing.changed.connect(self._refresh)
        self.editing.show_form.toggled.connect(self._fold_form)
        self.session.characters.changed.connect(self._refresh_busy)
        self.session.editing.closed.connect(self.results.grid.setFocus)  # the focused widget is hidden
        self.request.colours.changed.connect(self.drawing.recolour)
        self.request.edited.connect(self._refresh_busy)
        self.request.colours.own_known.connect(self.editing.editor.swatches.set_palette_of_model)
        self.session.catalog.ready.connect(self._refresh)
        self.session.catalog.devices_found.connect(self._refresh)
        models.busy_changed.connect(self._refresh_busy)
        models.progressed.connect(self._bar.show_progress)
        models.generated.connect(self._on_selection_changed)
        models.generated.connect(self._drawn.show_results)
        self.drawing.edited.connect(self._drawn.show_editor)
        self.drawing.edited.connect(self.editing.canvas_focus.request)

    @Slot()
    def _on_generate_clicked(self) -> None:
        if self._makes() == "sets":
            self.sets.drawing.draw()
        else:
            self.drawing.draw()

    @Slot(int)
    def _on_sprite_activated(self, number: int) -> None:
        """Show a double-clicked sprite large, or take it into the open editor."""
        if self.editing.is_open():
            self.drawing.edit(number)
        else:
            self.results.grid.open_large()

    def _lay_out(self) -> None:
        step, parts = factory.GRID, (factory.title("Generate"), self.choice, self.request, 1)
        form = factory.column(*parts, spacing=2 * step, margin=(3 * step, step, 2 * step, step))
        scroll = factory.scroll_area(factory.panel(form))
        factory.retain_size_when_hidden(self._bar)
        below = (self._reason, self._bar, self.generate, self.cancel)
        buttons = factory.column(*below, margin=(3 * step, step, 2 * step, 2 * step))
        self._form.setLayout(factory.column(scroll, buttons, spacing=0, grows=0))
        self._form.setMinimumWidth(312)
        for box in self._form.findChildren(QComboBox):
            ListSearch(box)
        layout = self.session.settings.layout
        self._add_view(self._drawn.area)
        self._add_view(self.predict)
        factory.fill_splitter(self._splitter, (self._form, self._right), (320, 900), layout("generate"), stretch=1)
        self.setLayout(factory.column(self._splitter))

    def _add_view(self, view: QWidget) -> None:
        """Add a view to the right side."""
        step = factory.GRID
        self._right.addWidget(factory.panel(factory.column(view, margin=(2 * step, step, 3 * step, step))))

    def _makes(self) -> str:
        """Return the chosen model's `makes`: 'sprites', 'sets', 'labels' or 'numbers'; 'sprites' if unknown."""
        recipe = self.choice.recipe()
        return recipe.makes if recipe is not None else "sprites"

    def _predicts(self) -> bool:
        return self._makes() not in ("sprites", "sets")

    def _share_keys(self, shared: bool) -> None:
        """Let the keys of the results work in the form, too, or only in the results."""
        for action in self.results.actions() if shared != (self._again in self._form.actions()) else ():
            (self._form.addAction if shared else self._form.removeAction)(action)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold_form()

    @Slot()
    def _fold_form(self) -> None:
        """Hide the form while the editor is open and needs the room, unless the user wants to see it."""
        is_narrow, has_sets = self.width() < _ROOM_FOR_ALL, self._makes() == "sets"
        is_editing = self.sets.is_editing() if has_sets else _is_editor_shown(self.editing)
        editor = self.sets.editing if has_sets else self.editing
        editor.show_form.setVisible(is_narrow)
        self._form.setVisible(not (is_narrow and is_editing) or editor.show_form.isChecked())

    @Slot()
    def _refresh(self) -> None:
        record, capabilities, predicts = self.choice.record(), self.choice.capabilities(), self._predicts()
        size, is_editing = record.size if record else 0, self.editing.is_open()
        makes = self._makes()
        if makes == "sets" and record is not None:
            self.sets.show_kind(record.cells, record.size)
        self._right.setCurrentIndex(_VIEWS.get(makes, 1))
        self.topic = "sets" if makes == "sets" else "generate"
        self._share_keys(makes == "sprites")
        self.request.setVisible(not predicts)
        self.request.show_sets(makes == "sets")
        self.request.show_classes(record.class_names if record else (), capabilities, size)
        attributes = record.attributes if record is not None and "attributes" in capabilities else {}
        self.request.attributes.show_attributes(attributes)
        self.request.show_model(str(self.choice.run() or ""))
        self.request.show_editing(is_editing="vary" in capabilities and is_editing)
        self.editing.set_model(size, capabilities)
        self.editing.setVisible("vary" in capabilities and (self.editing.is_open() or self.editing.is_asking()))
        for shortcuts, is_shown in (
            (self._editor_keys, makes != "sets" and _is_editor_shown(self.editing)),
            (self._cell_keys, makes == "sets" and self.sets.is_editing()),
        ):
            for key in shortcuts:
                key.setEnabled(is_shown)
        self._fold_form()
        self.results.set_model(capabilities, size, is_editing=self.editing.is_open())
        self._refresh_busy()

    @Slot()
    def _refresh_busy(self) -> None:
        busy, problem = self.session.inference.is_busy(), self.drawing.problem()
        text, tip = "Generate", _TIP
        if self._makes() == "sets":
            problem = self.sets.drawing.problem()
            text, tip = self.sets.draw_text()
        factory.set_button_text(self.generate, text)
        shown, hidden = (self.cancel, self.generate) if busy else (self.generate, self.cancel)
        shown.setVisible(busy or not self._predicts())
        if hidden.hasFocus():
            shown.setFocus()
        hidden.setVisible(False)
        if self._bar.isHidden():  # else a change of the form would hide the progress
            self._bar.show_busy()
        self._bar.setVisible(busy)
        factory.set_enabled(self.generate, problem, tip)
        self.editing.set_problem(problem)
        self._reason.setText(problem)
        self._reason.setVisible(bool(problem))

    def take(self, data: QMimeData) -> bool:
        """Predict dropped or pasted sprites, or edit a single image if the model can."""
        if self._predicts():
            return self.predict.take(data)
        if self._makes() == "sets":
            return self.sets.take(data)
        return "vary" in self.choice.capabilities() and self.editing.take(data)

    @Slot()
    def _on_selection_changed(self) -> None:
        """Show the selected sprite's nearest training sprites. Otherwise play a film, or lay out a tile set."""
        self.saver.refresh()
        selected, run = self.results.grid.selected(), self.choice.run()
        tiles = None if selected else self.results.content.tile_set()
        frames = self.results.content.frames(selected)
        if tiles is not None:
            self.neighbours.show_tile_set(tiles)
        elif frames is not None:
            self.neighbours.show_frames(frames)
        elif len(selected) != 1:
            self.neighbours.show_hint()
        else:
            sprite = self.results.content.sprite(selected[0]).rgba
            self.neighbours.show_tiled(sprite)
            if run is not None and self.choice.source() is not None:
                self.session.inference.find_neighbours(run, sprite)
        self.results.place_neighbours()


def _editor_keys(page: QWidget, editor: SpriteEditor) -> list[QShortcut]:
    """Let the keys of the tools work on the whole page; outside the editor, keys of the results come first."""
    commands = {**editor.tools.commands(), "invert": editor.invert.click}
    return [
        keys.shortcut(name, page, run, yields_to=("Generate page", "Characters", "Lists of sprites"))
        for name, run in commands.items()
    ]


def _is_editor_shown(editing: EditorPanel) -> bool:
    """Return whether the editor shows a sprite, unless its page is hidden."""
    return not editing.isHidden() and not editing.editor.isHidden()
