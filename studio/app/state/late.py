"""Import slow modules, for example users of torch, at their first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studio.app.background.late_import import LateModule

if TYPE_CHECKING:
    from studio.engine.models import exporting, model, provenance
    from studio.engine.quality import embedding_map, outliers
    from studio.engine.runs.analysis import report as run_report
    from studio.engine.runs.maintenance import free_space
    from studio.engine.sampling import generate
    from studio.engine.steps import benchmark
    from studio.engine.training import parents
    from studio.lab import report as lab_report
    from studio.lab import running
    from studio.lab.experiments import base as experiments
    from studio.lab.learn import cards as lesson_cards
    from studio.lab.learn import class_settings, code_child, hand_in
    from studio.lab.learn import records as lesson_records
    from studio.lab.learn import running as learning
    from studio.lab.lessons import base as lesson_base
else:
    exporting = LateModule("studio.engine.models.exporting")
    model = LateModule("studio.engine.models.model")
    provenance = LateModule("studio.engine.models.provenance")
    embedding_map = LateModule("studio.engine.quality.embedding_map")
    outliers = LateModule("studio.engine.quality.outliers")
    run_report = LateModule("studio.engine.runs.analysis.report")
    free_space = LateModule("studio.engine.runs.maintenance.free_space")
    generate = LateModule("studio.engine.sampling.generate")
    benchmark = LateModule("studio.engine.steps.benchmark")
    parents = LateModule("studio.engine.training.parents")
    lab_report = LateModule("studio.lab.report")
    running = LateModule("studio.lab.running")
    experiments = LateModule("studio.lab.experiments.base")
    lesson_cards = LateModule("studio.lab.learn.cards")
    class_settings = LateModule("studio.lab.learn.class_settings")
    code_child = LateModule("studio.lab.learn.code_child")
    hand_in = LateModule("studio.lab.learn.hand_in")
    lesson_records = LateModule("studio.lab.learn.records")
    learning = LateModule("studio.lab.learn.running")
    lesson_base = LateModule("studio.lab.lessons.base")

__all__ = [
    "benchmark", "class_settings", "code_child", "embedding_map", "experiments", "exporting", "free_space", "generate",
    "hand_in", "lab_report", "learning", "lesson_base", "lesson_cards", "lesson_records", "model", "outliers",
    "parents", "provenance", "run_report", "running",
]  # fmt: skip
