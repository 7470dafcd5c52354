"""`studio lab`: experiments on a device, and analyses of a run."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from studio.cli.flags import add_setting_flags, named_recipe, typed_settings
from studio.cli.inputs import find_device, find_run, read_sprites, run_import
from studio.cli.messages import DONE
from studio.cli.report import check_report
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.core import files, paths
from studio.core.errors import UsageError
from studio.core.events import Events
from studio.core.formatting import count, duration, local_time
from studio.core.shell import command_line
from studio.data.import_result import SpritesImported
from studio.data.options import ImportOptions
from studio.engine.runs.folder import RunDir
from studio.lab.results import ExperimentDone, Result, load_results

if TYPE_CHECKING:
    from studio.lab.experiments.base import Experiment


_SUBJECTS = ("sprites", "run")


def add_lab_flags(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """Add the flags of `studio lab` to a parser, and the list of experiments to its help.

    words: the command line, which may name a recipe; the recipe's settings become flags. Raises UsageError.
    """
    from studio.lab.catalog import experiments
    from studio.lab.experiments.base import MOST_S

    recipe = named_recipe(words)
    about = f"approximate duration, up to {MOST_S:g} seconds (default: depends on the experiment)"
    parser.add_argument("--seconds", type=float, metavar="X", help=about)
    add_setting_flags(parser, recipe.Config, f"{recipe.name} settings")
    known = experiments().values()
    on_sprites, on_run = (
        [f"  {item.name:15}{item.question}" for item in known if item.subject == subject] for subject in _SUBJECTS
    )
    heading = "analyses of a run (studio lab EXPERIMENT RUN; without settings):"
    parser.epilog = "\n".join(["experiments:", *on_sprites, "", heading, *on_run])


def lab(args: argparse.Namespace) -> int:
    """Run an experiment and print the result; without a name, list experiments and earlier results."""
    reporter = reporter_for(args)
    check_report(args.out)
    if args.compare is not None:
        return _compare(args, reporter)
    if args.experiment is None:
        return _print_list(reporter)
    from studio.lab.catalog import experiment
    from studio.lab.experiments.base import MOST_S

    chosen = experiment(args.experiment)
    seconds = chosen.seconds if args.seconds is None else args.seconds
    if not 1 <= seconds <= MOST_S:
        hint = f"The default for '{chosen.title}' is {chosen.seconds:g}."
        raise UsageError(f"--seconds must be from 1 to {MOST_S:g}.", hint)
    events = (_on_run if chosen.subject == "run" else _on_sprites)(chosen, seconds, args, reporter)
    done = run_job(events, reporter, ExperimentDone)
    _print_result(done.result, reporter)
    _save(args, [done.result], reporter)
    return DONE


def _compare(args: argparse.Namespace, reporter: Reporter) -> int:
    """Print earlier results one after another. Raises UsageError for an unknown number."""
    results, _ = load_results()
    for number in args.compare:
        if not 1 <= number <= len(results):
            hint = f"'studio lab' lists them: {count(len(results), 'result')}."
            raise UsageError(f"There is no result {number}.", hint)
    chosen = [results[number - 1] for number in args.compare]
    for number, result in zip(args.compare, chosen, strict=True):
        reporter.write_json(_to_json(result))
        reporter.print(f"\n{number}  {result.title}: {result.question}")
        subject = result.examined() or result.data_title
        reporter.print(f"{_date_of(result)}, {result.recipe}, {subject}, {result.device_name}")
        _print_result(result, reporter)
    _save(args, chosen, reporter)
    return DONE


def _save(args: argparse.Namespace, results: Sequence[Result], reporter: Reporter) -> None:
    """Write a report of the results to --out, if given."""
    from studio.lab.report import save_report

    if args.out is not None:
        named = args.out / f"{files.output_name(results[0].title)}.html" if args.out.is_dir() else args.out
        path = save_report(named, results)
        reporter.write_json({"type": "FilesSaved", "paths": [path]})
        reporter.print(f"\nThe report is in {path}")


def _on_sprites(chosen: Experiment, seconds: float, args: argparse.Namespace, reporter: Reporter) -> Events:
    """Create the job of an experiment, with the named or the demo sprites. Raises UsageError, BadInputError."""
    from studio.engine import catalog
    from studio.lab.running import run_experiment

    if args.checkpoint is not None:
        raise UsageError(f"'{chosen.title}' does not analyse a run.", "Remove --checkpoint.")
    recipe = catalog.recipe(args.recipe)
    config = recipe.Config().replace(**typed_settings(args, recipe.Config))
    found = _sprites(args, reporter)
    device = find_device(args, probe=True)
    context = chosen.context(recipe, config, found.sprites, device, seconds)
    reporter.print(f"{chosen.question} {context.recipe.title}, on {device.name}, about {duration(seconds)}.")
    return run_experiment(chosen, context)


def _on_run(chosen: Experiment, seconds: float, args: argparse.Namespace, reporter: Reporter) -> Events:
    """Create the job that analyses the named run. Raises UsageError, RunError."""
    from studio.engine import catalog
    from studio.lab.running import examine_run

    if len(args.paths) != 1:
        hint = f"{command_line('studio', 'lab', chosen.name, 'RUN')}; 'studio runs' lists all."
        raise UsageError(f"'{chosen.title}' needs one run.", hint)
    run = find_run(str(args.paths[0]))
    recipe = catalog.recipe(RunDir(run).record().recipe)
    if args.recipe or typed_settings(args, catalog.recipe(args.recipe).Config) or typed_settings(args, ImportOptions):
        raise UsageError("A run has its own recipe, settings and sprites.", "Remove the other flags.")
    if obstacle := chosen.unsupported_reason(recipe):
        raise UsageError(f"'{chosen.title}' can't be done with {run.name}.", obstacle)
    device = find_device(args, probe=True)
    reporter.print(f"{chosen.question} {run.name}, on {device.name}.")
    return examine_run(chosen, run, args.checkpoint or "best", device, seconds)


def _sprites(args: argparse.Namespace, reporter: Reporter) -> SpritesImported:
    """Import the named sprites, or the demo sprites."""
    if args.paths:
        return read_sprites(args, args.paths, reporter)
    return run_import([paths.demo_sprites()], ImportOptions(), reporter)


def _print_result(result: Result, reporter: Reporter) -> None:
    for table in result.outcome.tables:
        reporter.print()
        reporter.print_table(table.columns, table.rows)
    reporter.print()
    for sentence in result.outcome.sentences:
        reporter.print(sentence)
    if result.outcome.suggests:
        settings = result.outcome.suggests.items()
        flags = [word for name, value in settings for word in (f"--{name.replace('_', '-')}", str(value))]
        again = command_line("studio", "train", "FOLDER", "--recipe", result.recipe, *flags)
        reporter.print(f"Use it:  {again}")


def _print_list(reporter: Reporter) -> int:
    from studio.lab.catalog import experiments

    found = list(experiments().values())
    for item in found:
        told = {"name": item.name, "question": item.question, "seconds": item.seconds, "subject": item.subject}
        reporter.write_json({"type": "Experiment", **told})
    rows = [(item.name, item.subject, item.question, duration(item.seconds)) for item in found]
    reporter.print_table(("experiment", "with", "question", ">takes"), rows)
    results, problems = load_results()
    if results or problems:
        reporter.print(f"\nEarlier results, stored in {paths.lab()}:")
    for number, result in enumerate(results, 1):
        reporter.write_json(_to_json(result))
        sentence = result.outcome.sentences[0] if result.outcome.sentences else ""
        of_run = f", {result.examined()}" if result.run else ""
        reporter.print(f"{number:>4}  {_date_of(result)}  {result.title}{of_run}: {sentence}")
    for problem in problems:
        reporter.print(f"      {problem}")
    if results:
        reporter.print("\nCompare results:  studio lab --compare 1 2 --out report.html")
    return DONE


def _to_json(result: Result) -> dict[str, Any]:
    about = {"experiment": result.experiment, "created": result.created, "run": result.run}
    return {"type": "Result", **about, **vars(result.outcome)}


def _date_of(result: Result) -> str:
    """Return date and time of a result: '2026-11-25 15:02'."""
    return local_time(result.created)
