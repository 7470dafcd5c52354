"""Connects the given cells, the candidates and the model of sets: draws, redraws and carries corrections over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from PySide6.QtCore import QObject, Signal, Slot

from studio.app.background.set_jobs import SetRequest, SetsCompleted
from studio.app.pages.generate.drawing import DrawController
from studio.app.pages.generate.request import RequestPanel
from studio.app.pages.generate.sets.view import SetsView
from studio.app.pages.model_choice import ModelChoice
from studio.app.state.session import Session
from studio.core import formatting
from studio.core.arrays import Mask, Rgba
from studio.core.pictures import are_filled
from studio.data.sets.drafts import Candidate, CellRef, Draft
from studio.data.sets.placing import count_colours
from studio.engine.sampling.settings import MAX_CANDIDATES, CompleteSettings, GivenSets


@dataclass(frozen=True, eq=False)
class Redraw:
    """Cells of a candidate to draw again. carries: use the same random numbers, for the same drawing but corrected."""

    candidate: Candidate
    where: Mask  # bool [C]
    carries: bool

    def request(self, settings: CompleteSettings) -> SetRequest:
        """Return the request for the model: all other cells are given."""
        one, given = self.candidate, ~self.where
        first = one.noise if self.carries else one.noise + MAX_CANDIDATES * (one.redraws + 1)
        sets = GivenSets(("the character",), one.cells[None], given[None]) if given.any() else None
        return SetRequest(settings.replace(count=1, seed=one.seed), sets, first)


@dataclass(frozen=True, eq=False)
class _Pending:
    """The running request. draft: at its start. redraws: empty for new candidates."""

    draft: Draft
    redraws: Sequence[Redraw] = ()


class SetController(QObject):
    """Sends requests to the chosen model of sets, or says why that is impossible, and applies the results."""

    drawn = Signal()  # new candidates

    def __init__(
        self, session: Session, choice: ModelChoice, request: RequestPanel, view: SetsView, drawing: DrawController
    ) -> None:
        """Connect the buttons. drawing: knows why no model can draw."""
        super().__init__(view)
        self._general = drawing
        self._session, self._choice, self._request, self._view = session, choice, request, view
        self._characters = session.characters
        self._pending: _Pending | None = None
        self._examples = 0  # shown so far
        buttons = view.candidates.buttons
        for button, slot in (
            (buttons.lock, self.toggle_lock), (buttons.redraw, self.redraw), (buttons.redraw_rest, self.redraw_rest),
            (buttons.edit, self.edit), (buttons.carry_over, self.carry_over), (buttons.use, self.use_as_given),
            (buttons.reject, self.reject), (view.given.example, self.find_example),
        ):  # fmt: skip
            button.clicked.connect(slot)
        view.candidates.table.opened.connect(self.edit)
        session.inference.completed.connect(self._on_completed)
        session.inference.example_found.connect(self._on_example_found)

    def problem(self) -> str:
        """Return why the chosen model can't complete the given cells; '' if possible."""
        if general := self._general.problem():
            return general
        draft, record = self._characters.draft, self._choice.record()
        given = draft.given
        if given.any() and given.all():
            return "All cells are given. Clear at least one cell to draw it."
        most = record.config.get("colours") if record is not None else None
        colours = count_colours(draft.cells[given])
        if isinstance(most, int) and colours >= most:
            return f"The given cells have {colours} colours; the model takes {most - 1}. Reduce the colours."
        return ""

    @Slot()
    def draw(self) -> None:
        """Draw candidates for the given cells, or new characters if nothing is given."""
        if not self._may_draw(self.problem()):
            return
        draft = self._characters.draft
        settings, given = self._request.sets.settings().replace(seed=self._request.next_seed()), draft.given
        sets = GivenSets(("the character",), draft.cells[None], given[None]) if given.any() else None
        self._submit([SetRequest(settings, sets)], _Pending(draft))

    @Slot()
    def redraw(self) -> None:
        """Draw the selected, unlocked cells again."""
        cells = self._view.candidates.cells()
        self._redraw([(one, self._mask(cells, one) & ~one.locked) for one in self._view.candidates.chosen()])

    @Slot()
    def redraw_rest(self) -> None:
        """Draw all unlocked cells of the selected characters again."""
        self._redraw([(one, ~one.locked) for one in self._view.candidates.chosen()])

    @Slot()
    def carry_over(self) -> None:
        """Draw the unlocked cells of corrected characters again, with the corrections given."""
        edited = self._characters.edited
        at = self._characters.draft.candidate(edited.key) if edited is not None else None
        chosen = [at] if at is not None else self._view.candidates.chosen()
        self._redraw([(one, ~one.locked) for one in chosen if one.painted.any()], carries=True)

    @Slot()
    def toggle_lock(self) -> None:
        """Lock the selected cells; unlock locked cells if no other cell is selected."""
        cells = self._view.candidates.cells()
        are_locked = all(one.locked[cell] for one, cell in cells)
        self._characters.set_locked(self._view.candidates.refs(), locked=not are_locked)

    @Slot()
    def edit(self) -> None:
        """Open the current cell in the editor."""
        found = self._view.candidates.candidate_at(self._view.candidates.table.current())
        if found is not None:
            self._characters.edit(CellRef(found[0].key, found[1]))

    @Slot()
    def use_as_given(self) -> None:
        """Give the selected and the locked cells of the selected character."""
        chosen = self._view.candidates.chosen()
        if len(chosen) == 1:
            cells = self._mask(self._view.candidates.cells(), chosen[0]) | chosen[0].locked
            self._characters.use_as_given(chosen[0].key, np.flatnonzero(cells).tolist())

    @Slot()
    def reject(self) -> None:
        """Remove the selected characters."""
        self._characters.reject([one.key for one in self._view.candidates.chosen()])

    @Slot()
    def find_example(self) -> None:
        """Give the first view of a character of the training data."""
        run = self._choice.run()
        if run is not None:
            self._session.inference.find_example(run, self._examples)
            self._examples += 1

    def _mask(self, cells: Sequence[tuple[Candidate, int]], candidate: Candidate) -> Mask:
        """Return the mask of a candidate's cells in `cells`: bool [C]."""
        mask = np.zeros(len(candidate.cells), np.bool_)
        mask[[cell for one, cell in cells if one.key == candidate.key]] = True
        return mask

    def _redraw(self, parts: Sequence[tuple[Candidate, Mask]], *, carries: bool = False) -> None:
        """Draw cells of candidates again. parts: candidates, and the cells to draw."""
        redraws = [Redraw(one, where, carries) for one, where in parts if where.any()]
        if redraws and self._may_draw(self._general.problem()):
            settings = self._request.sets.settings()
            requests = [redraw.request(settings) for redraw in redraws]
            self._submit(requests, _Pending(self._characters.draft, redraws))

    def _may_draw(self, problem: str) -> bool:
        """Return whether drawing is possible; show the problem if not."""
        if problem:
            self._session.notify(problem, holds=lambda: problem in (self.problem(), self._general.problem()))
        return not problem

    def _submit(self, requests: Sequence[SetRequest], pending: _Pending) -> None:
        source, device = self._choice.source(), self._choice.device()
        if source is not None and device is not None:
            self._pending = pending
            self._session.inference.complete(source, device, requests)

    @Slot(object)
    def _on_completed(self, result: SetsCompleted) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        draft = self._characters.latest(pending.draft)
        if pending.redraws:
            self._characters.change(_redraw_title(pending.redraws), _with_redrawn(draft, pending.redraws, result))
        else:
            candidates = _candidates(result)
            title = f"draw {formatting.count(len(candidates), 'character')}"
            self._characters.change(title, replace(draft, candidates=candidates))
            self.drawn.emit()

    @Slot(str, object)
    def _on_example_found(self, name: str, cells: Rgba) -> None:
        draft = self._characters.draft
        if cells.shape == draft.cells.shape:
            filled = np.flatnonzero(are_filled(cells))
            self._characters.give({int(cell): cells[cell] for cell in filled[:1]}, "take")


def _candidates(result: SetsCompleted) -> tuple[Candidate, ...]:
    """Return newly drawn characters; their given cells are locked."""
    found = result.drawn[0]
    return tuple(
        Candidate(cells, given, given, np.zeros_like(given), found.seed, number, 0, found.model, result.source)
        for number, (cells, given) in enumerate(zip(found.cells, found.given, strict=True))
    )


def _with_redrawn(draft: Draft, redraws: Sequence[Redraw], result: SetsCompleted) -> Draft:
    """Return the draft with redrawn cells, except for cells that were locked and characters removed meanwhile."""
    for redraw, found in zip(redraws, result.drawn, strict=True):
        now = draft.candidate(redraw.candidate.key)
        if now is not None:
            newly_locked = now.locked & ~redraw.candidate.locked
            where = redraw.where & ~newly_locked
            draft = draft.with_candidate(now.redrawn(found.cells[0], where, carries=redraw.carries))
    return draft


def _redraw_title(redraws: Sequence[Redraw]) -> str:
    verb = "carry over to" if redraws[0].carries else "redraw"
    return f"{verb} {formatting.count(sum(int(one.where.sum()) for one in redraws), 'cell')}"
