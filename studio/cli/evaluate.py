"""`studio evaluate`: the quality of generated sprites, or the metrics of a model on the validation set."""

from __future__ import annotations

import argparse

from studio.cli.flags import typed_settings
from studio.cli.inputs import find_device, find_run, load_model, print_excluded, run_import
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.core.errors import UsageError
from studio.core.events import Evaluated, Validated
from studio.core.formatting import count
from studio.core.metrics import BETTER, FIGURES, LOSS, format_metric, metric_title
from studio.data.options import ImportOptions

# By what a recipe makes: the heading of the baseline's column, and an explanation below the table.
_BASELINES = {
    "numbers": (
        "predicting the mean",
        "R²: 1 is perfect, 0 equals predicting the mean. Errors are in the unit of each number.",
    ),
    "sets": (
        "beside it",
        "exact pixels: right pixels of cells drawn from the first cell; beside it, the given cell repeated. "
        "steps: later frames from the first frame of each view. side: a view from the opposite view; beside it, its "
        "mirror image. The other figures have those of real cells beside them.",
    ),
}


def evaluate(args: argparse.Namespace) -> int:
    """Measure the quality of generated sprites or of the sprites in PATHs, or a classifier's or regressor's errors."""
    from studio.engine.quality.evaluate import EvaluateSettings, evaluate, evaluate_sprites

    reporter, path, device = reporter_for(args), find_run(args.run_name), find_device(args)
    settings = EvaluateSettings(**typed_settings(args, EvaluateSettings))  # type: ignore[arg-type]
    model = load_model(path, args, device, reporter)
    if model.recipe.makes != "sprites":
        if args.paths:
            title = f"{model.recipe.kind.capitalize()} is evaluated on the validation set of its run."
            raise UsageError(title, "Remove the paths.")
        found = run_job(evaluate(model, path, settings), reporter, Validated)
        _print_metrics(found, _BASELINES.get(model.recipe.makes, ("", "")), reporter)
        return 0
    if args.paths:
        read = run_import(args.paths, ImportOptions(size=model.spec.size), reporter)
        print_excluded(read, reporter)
        events = evaluate_sprites(model, path, read.sprites.rgba, read.sprites.title, settings)
    else:
        events = evaluate(model, path, settings)
    _print_quality(run_job(events, reporter, Evaluated), reporter)
    return 0


def _print_quality(found: Evaluated, reporter: Reporter) -> None:
    reporter.print(
        f"{count(found.count, 'sprite')} of {found.title}, compared with {count(found.heldout_count, 'sprite')} for "
        f"validation and {count(found.training_count, 'sprite')} for training.\n"
    )
    sets = [found.figures[name] for name in ("new", "real", "cheat")]
    rows = [
        (figure.title, *(figure.format(values) for values in sets), BETTER[figure.better])
        for figure in FIGURES
        if figure.name in sets[0]
    ]
    reporter.print_table(("", ">evaluated", ">real sprites", ">copied sprites", ""), rows)
    reporter.print(
        "\nreal sprites: real sprites compared with other real sprites, the best possible result.\n"
        "copied sprites: training sprites used as output; their distances are perfect, but all are copies."
    )


def _print_metrics(found: Validated, baseline: tuple[str, str], reporter: Reporter) -> None:
    heading, explanation = baseline
    names = [name for name in found.metrics if name != LOSS.name or not found.baseline]
    rows = [[metric_title(name), format_metric(name, found.metrics[name])] for name in names]
    reporter.print(f"Validation at step {found.step:,}:\n")
    if not found.baseline:
        reporter.print_table(("", ">value"), rows)
        return
    rows = [[*row, format_metric(name, found.baseline[name])] for row, name in zip(rows, names, strict=True)]
    reporter.print_table(("", ">this model", f">{heading}"), rows)
    reporter.print(f"\n{explanation}")
