"""The map of sprites: similar sprites lie close together. Also outliers, and a latent walk between two sprites."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QSplitter, QWidget

from studio.app.background.model_jobs import SavedModel
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.models.sprite_map import SpriteMap
from studio.app.state.session import Session
from studio.app.widgets import factory
from studio.app.widgets.editor.previews import Preview
from studio.app.widgets.input import NoSecondPress
from studio.app.widgets.layout import FlowLayout
from studio.app.widgets.sprites.buttons import SpriteButtons
from studio.app.widgets.sprites.map_view import MapView, group_colours
from studio.core import formatting

_EMPTY = (
    "The map shows all sprites of a run. Similar sprites are close together.\n\n"
    "Train an Autoencoder on the Train page, or choose a run above, then press Show."
)
_SELECT = "Click a sprite to see its nearest neighbours."
_WALK = "Sprites decoded between A and B in the latent space."
_HOW_TO_WALK = "Click a sprite for A, then Shift+click a sprite for B."
_CLASSES_SHOWN = 8  # colours in the theme
_NEIGHBOURS_SHOWN, _ODD_SHOWN = 6, 12
_HALF = 50  # percent
_LARGE, _SMALL = 128, 80  # logical pixels
_SIDE_WIDTH = 304


class LatentWalk(QWidget):
    """A walk between two sprites in the model's latent space, with a slider."""

    def __init__(self, sprite_map: SpriteMap) -> None:
        super().__init__()
        self._map = sprite_map
        self.ends: tuple[int, int] | None = None  # A and B
        self.first = Preview("A", "Sprite A, where the latent walk starts.", zoom=8, side=_SMALL)
        self.drawn = Preview("Between A and B", _WALK, zoom=8, side=_SMALL)
        self.last = Preview("B", "Sprite B, where the latent walk ends.", zoom=8, side=_SMALL)
        self.slider = factory.percent_slider("Latent walk", _WALK, 0)
        self._hint = factory.caption(_HOW_TO_WALK)
        previews = factory.row(self.first, 1, self.drawn, 1, self.last)
        self._way = factory.panel(factory.column(previews, self.slider, spacing=4))
        self.setLayout(factory.column(factory.heading("Latent walk"), self._hint, self._way, spacing=4))
        self.slider.valueChanged.connect(self._on_slider_moved)
        sprite_map.decoded.connect(self.drawn.show_sprite)
        self.clear()

    def clear(self) -> None:
        self.ends = None
        self._way.hide()
        can_walk = self._map.shown is None or self._map.shown.decodes
        self._hint.setText(_HOW_TO_WALK if can_walk else "A latent walk needs an Autoencoder.")

    def go(self, first: int, last: int) -> None:
        """Walk between these sprites of the map."""
        shown = self._map.shown
        if shown is None or not shown.decodes:
            return
        self.ends = (first, last)
        self.first.show_sprite(shown.sprites.rgba[first])
        self.last.show_sprite(shown.sprites.rgba[last])
        self._way.show()
        if self.slider.value() == _HALF:
            self._on_slider_moved()
        self.slider.setValue(_HALF)

    @Slot()
    def _on_slider_moved(self) -> None:
        shown = self._map.shown
        if shown is not None and self.ends is not None:
            share = self.slider.value() / 100
            first, last = shown.features[list(self.ends)]
            self._map.decode((1 - share) * first + share * last)


class MapPage(QWidget):
    """The map of a run's sprites, with the selected sprite, its neighbours, outliers and the latent walk."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session, self._map = session, session.sprite_map
        self._selected = -1
        self._neighbours: NDArray[np.int64] = np.zeros(0, np.int64)  # indices of the shown neighbours
        self.choice = ModelChoice(session, only_runs=True, first="decode")
        tip = "Arrange this run's sprites by the model's features, so that similar sprites are close."
        self.show_map = factory.button("Show", tip, "fit", "primary", self._on_show_clicked)
        tip = "Stop and keep the previous map."
        self.cancel = factory.button("Cancel", tip, "close", slot=self._map.cancel)
        NoSecondPress(self.cancel)
        self.progress = factory.ProgressBar()
        self.view = MapView()
        tip = "Show the whole map. (Home, or double-click)"
        self.fit = factory.tool_button("fit", "Fit to window", tip, self.view.fit)
        self.zoom_in = factory.tool_button("zoom-in", "Zoom in", "Zoom in. (+, or mouse wheel)", self._zoom_in)
        self.zoom_out = factory.tool_button("zoom-out", "Zoom out", "Zoom out. (-, or mouse wheel)", self._zoom_out)
        self.large = Preview("Selected sprite", "The sprite selected on the map.", zoom=8, side=_LARGE)
        self.name = factory.ElidedLabel(elide=Qt.TextElideMode.ElideMiddle)
        self.about = factory.caption(_SELECT)
        self.neighbours, self.odd = SpriteButtons("Nearest neighbours"), SpriteButtons("Outliers")
        self.walk = LatentWalk(self._map)
        self._summary = factory.caption("")
        self._legend = FlowLayout(factory.GRID, factory.GRID // 2)
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        empty = factory.caption(_EMPTY)
        empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._stack = factory.stack(factory.panel(factory.column(1, empty, 1)), self._splitter)
        self._like = factory.caption("Nearest neighbours")
        self._lay_out()
        self.choice.changed.connect(self._refresh)
        session.catalog.devices_found.connect(self._refresh)
        self._map.changed.connect(self._refresh)
        self._map.progressed.connect(self.progress.show_progress)
        self._map.made.connect(self._on_map_made)
        self.view.chosen.connect(self.select)
        self.view.end_chosen.connect(self.end_walk)
        self.neighbours.chosen.connect(self._on_neighbour_chosen)
        self.odd.chosen.connect(self._on_outlier_chosen)
        self._refresh()

    def save_state(self) -> None:
        self._session.settings.set_layout("map", self._splitter.saveState())

    @Slot(int)
    def select(self, index: int) -> None:
        """Select a sprite on the map and show its details. A latent walk starts from this sprite."""
        shown = self._map.shown
        if shown is None:
            return
        self._selected = index
        sprites, names = shown.sprites, shown.sprites.names
        self.view.select(index)
        self.large.show_sprite(sprites.rgba[index])
        self.large.show()
        self.name.show_text(names[index])
        distance = f"{shown.apart[index]:.1f} times the usual distance to its neighbours."
        self.about.setText(f"Class: {sprites.class_names[sprites.labels[index]]}. Distance: {distance}")
        self._neighbours = shown.neighbours[index, :_NEIGHBOURS_SHOWN]
        near = [names[other] for other in self._neighbours]
        self.neighbours.show_sprites(sprites.rgba[self._neighbours], near, near)
        self._like.show()
        self.walk.clear()
        self._mark()

    @Slot(int)
    def end_walk(self, index: int) -> None:
        """Show the latent walk from the selected sprite to this sprite."""
        if self._selected < 0:
            self.select(index)
        elif self._map.shown is not None and self._map.shown.decodes:
            self.walk.go(self._selected, index)
            self._mark()

    def _lay_out(self) -> None:
        self.progress.setFixedHeight(factory.GRID)
        factory.retain_size_when_hidden(self.progress)
        buttons = factory.column(1, factory.row(self.show_map, self.cancel), spacing=0)
        head = factory.row(self.choice, buttons, self._summary, spacing=2 * factory.GRID, grows=2)
        zooms = factory.column(factory.row(self.fit, self.zoom_out, self.zoom_in, spacing=4), 1)
        left = factory.column(self.view, factory.row(factory.panel(self._legend), zooms, grows=0), grows=0)
        about, margin = (self.large, self.name, self.about, self._like, self.neighbours), (factory.GRID, 0) * 2
        side = factory.column(*about, self.walk, factory.heading("Outliers"), self.odd, 1, margin=margin)
        scroll = factory.scroll_area(factory.panel(side))
        scroll.setMinimumWidth(_SIDE_WIDTH)
        parts, layout = (factory.panel(left), scroll), self._session.settings.layout("map")
        factory.fill_splitter(self._splitter, parts, (900, _SIDE_WIDTH), layout, stretch=0)
        self.setLayout(factory.column(head, self.progress, self._stack, margin=2 * factory.GRID, grows=2))
        self.large.hide()
        self._like.hide()
        self.odd.setToolTip("Sprites far from their neighbours, farthest first. Click a sprite to show it on the map.")
        self.neighbours.setToolTip("The sprites most similar to the selected sprite, by the model's features.")

    @Slot()
    def _refresh(self) -> None:
        busy, source = self._map.is_busy(), self.choice.source()
        problem = "" if self.choice.device() is not None else "Searching for devices…"
        if source is None:
            problem = "No model yet. Train one on the Train page; an Autoencoder works best."
        factory.set_enabled(self.show_map, problem)
        factory.show_instead(*((self.cancel, self.show_map) if busy else (self.show_map, self.cancel)))
        if self.progress.isHidden():  # else another choice would hide the progress
            self.progress.show_busy()
        self.progress.setVisible(busy)

    @Slot()
    def _on_show_clicked(self) -> None:
        source, device = self.choice.source(), self.choice.device()
        if isinstance(source, SavedModel) and device is not None:
            self._map.make(source, device)

    @Slot()
    def _on_map_made(self) -> None:
        shown = self._map.shown
        if shown is None:
            return
        sprites = shown.sprites
        groups, names = colour_groups(sprites.class_names, sprites.labels)
        self.view.set_map(sprites.rgba, sprites.names, shown.positions, shown.spacing, groups)
        self.view.select(-1)
        self._show_legend(names, has_others=bool((groups < 0).any()))
        self._selected = -1
        self.large.hide()
        self._like.hide()
        self.name.show_text("")
        self.about.setText(_SELECT)
        self.neighbours.show_sprites(sprites.rgba[:0], (), ())
        odd = shown.odd[:_ODD_SHOWN]
        tips = [f"{sprites.names[index]}: {shown.apart[index]:.1f} times the usual distance." for index in odd]
        self.odd.show_sprites(sprites.rgba[odd], [sprites.names[index] for index in odd], tips)
        self.walk.clear()
        some = f" of {formatting.number(shown.total)}" if shown.total > len(sprites) else ""
        how_many, share = formatting.count(len(sprites), "sprite"), formatting.percent(shown.explained)
        self._summary.setText(f"{how_many}{some}. The two axes show {share} of the variance.")
        self._stack.setCurrentIndex(1)

    def _show_legend(self, names: Sequence[str], *, has_others: bool) -> None:
        factory.clear(self._legend)
        for number, name in [*enumerate(names), *([(-1, "Other")] if has_others else [])]:
            self._legend.addWidget(_LegendEntry(number, name))

    def _mark(self) -> None:
        ends = self.walk.ends
        self.view.mark({} if ends is None else {ends[0]: "A", ends[1]: "B"})

    @Slot(int)
    def _on_neighbour_chosen(self, index: int) -> None:
        self._visit(int(self._neighbours[index]))

    @Slot(int)
    def _on_outlier_chosen(self, index: int) -> None:
        if self._map.shown is not None:
            self._visit(int(self._map.shown.odd[index]))

    def _visit(self, index: int) -> None:
        self.select(index)
        self.view.show_sprite(index)

    @Slot()
    def _zoom_in(self) -> None:
        self.view.camera.zoom(1.5)

    @Slot()
    def _zoom_out(self) -> None:
        self.view.camera.zoom(1 / 1.5)


class _LegendEntry(QWidget):
    """A colour square with a class name."""

    def __init__(self, group: int, name: str) -> None:
        super().__init__()
        self._group = group
        self.setLayout(factory.row(factory.text(name, "muted", wrap=False), margin=(2 * factory.GRID, 0, 0, 0)))

    def paintEvent(self, event: QPaintEvent) -> None:
        side, colour = factory.GRID + 2, group_colours()[self._group]
        with QPainter(self) as painter:
            painter.fillRect(0, (self.height() - side) // 2, side, side, QColor(colour))


def colour_groups(class_names: Sequence[str], labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str]]:
    """Group sprites by class for colouring. Return each sprite's group, int64 [N], and the groups' names.

    With more classes than colours, classes in a common folder share a group. With too many top folders, only the
    largest classes become groups, and all other sprites get -1.
    """
    parts = [tuple(name.split("/")) for name in class_names]
    counts = np.bincount(labels, minlength=len(class_names))
    for depth in range(max(map(len, parts)), 0, -1):
        names = ["/".join(part[:depth]) for part in parts]
        present = [name for name, count in zip(names, counts, strict=True) if count]
        if len(set(present)) <= _CLASSES_SHOWN and (len(set(present)) > 1 or depth == max(map(len, parts))):
            break
    else:
        names = list(class_names)
    totals: Counter[str] = Counter()
    for name, count in zip(names, counts.tolist(), strict=True):
        totals[name] += count
    shown = sorted(name for name, count in totals.most_common(_CLASSES_SHOWN) if count)
    group_of = {name: group for group, name in enumerate(shown)}
    return np.array([group_of.get(name, -1) for name in names])[labels], shown
