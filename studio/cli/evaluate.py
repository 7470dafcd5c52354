"""The command that says how good a model is."""

from __future__ import annotations

import argparse

from studio.cli.arguments import find_device, find_run, import_with, load_model, say_left_out
from studio.cli.flags import add_settings, given
from studio.cli.reporting import Reporter, follow, reporter_for
from studio.core.errors import UsageError
from studio.core.events import Evaluated, Validated
from studio.core.formatting import count
from studio.core.metrics import BETTER, FIGURES, LOSS, format_metric, metric_title
from studio.data.options import ImportOptions


def add_evaluate_flags(parser: argparse.ArgumentParser) -> None:
    """Add a flag for every setting of evaluating."""
    from studio.engine.quality.evaluate import EvaluateSettings

    add_settings(parser, EvaluateSettings, "what to judge")


def evaluate(args: argparse.Namespace) -> int:
    """Judge new sprites of a generator, other sprites by the same data, or what a model says of held-out sprites."""
    from studio.engine.quality.evaluate import EvaluateSettings, evaluate, evaluate_sprites

    reporter, path, device = reporter_for(args), find_run(args.run_name), find_device(args)
    settings = EvaluateSettings(**given(args, EvaluateSettings))  # type: ignore[arg-type]
    model = load_model(path, args, device, reporter)
    if model.recipe.makes != "sprites":
        if args.paths:
            raise UsageError(f"A {model.recipe.name} is judged by its own held-out sprites.", "Leave out the paths.")
        _say_validated(follow(evaluate(model, path, settings), reporter, Validated), reporter)
        return 0
    if args.paths:
        read = import_with(args.paths, ImportOptions(size=model.spec.size), reporter)
        say_left_out(read, reporter)
        events = evaluate_sprites(model, path, read.sprites.rgba, read.sprites.title, settings)
    else:
        events = evaluate(model, path, settings)
    _say_evaluated(follow(events, reporter, Evaluated), reporter)
    return 0


def _say_evaluated(found: Evaluated, reporter: Reporter) -> None:
    reporter.say(
        f"{count(found.count, 'sprite')} of {found.title}, beside {count(found.heldout_count, 'sprite')} held out and "
        f"{count(found.training_count, 'sprite')} learnt from.\n"
    )
    sets = [found.figures[name] for name in ("new", "real", "cheat")]
    rows = [
        (figure.title, *(figure.write(values) for values in sets), BETTER[figure.better])
        for figure in FIGURES
        if figure.name in sets[0]
    ]
    reporter.table(("", ">these", ">real ones", ">a cheat", ""), rows)
    reporter.say(
        "\nreal ones: real sprites against real ones, as good as it gets. a cheat: training sprites handed back;\n"
        "its distances are perfect and its copies give it away."
    )


def _say_validated(found: Validated, reporter: Reporter) -> None:
    names = [name for name in found.metrics if name != LOSS.name or not found.baseline]
    rows = [[metric_title(name), format_metric(name, found.metrics[name])] for name in names]
    reporter.say(f"On held-out sprites, at step {found.step:,}:\n")
    if not found.baseline:
        reporter.table(("", ">value"), rows)
        return
    rows = [[*row, format_metric(name, found.baseline[name])] for row, name in zip(rows, names, strict=True)]
    reporter.table(("", ">this model", ">always the mean"), rows)
    reporter.say(
        "\nR²: 1 is right throughout, 0 no better than always saying the mean. Errors are in each number's own unit."
    )
