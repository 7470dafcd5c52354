"""`studio export`: a model as a file for other programs, or the curves of a run for TensorBoard."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from studio.cli.flags import add_setting_flags, typed_settings
from studio.cli.inputs import find_run, load_model
from studio.cli.messages import DONE
from studio.cli.reporting import Reporter, reporter_for, run_job
from studio.core import files
from studio.core.discovery import find_plugin
from studio.core.errors import UsageError
from studio.core.events import Exported
from studio.core.formatting import describe_agreement, memory
from studio.core.shell import command_line
from studio.engine.runs.analysis.event_log import FORMAT as TENSORBOARD
from studio.engine.runs.analysis.event_log import EventLogSaved, save_event_log
from studio.engine.runs.folder import EXPORTS_FOLDER, RunDir

if TYPE_CHECKING:
    from studio.core.config import Config
    from studio.engine.models.model import TrainedModel
    from studio.exports.base import ModelExport

_TENSORBOARD_HELP = "Curves, samples and settings of the run in a folder for TensorBoard, instead of the model."


def add_export_flags(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """Add a flag for every setting of the format in the command line `words`. Raises UsageError."""
    first_look = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first_look.add_argument("--format", nargs="?")
    first_look.add_argument("--out", nargs="?", type=Path)
    named = first_look.parse_known_args(words)[0]
    if named.format is None and named.out is None:  # plain --help stays fast: formats import torch
        parser.epilog = "Each format has its own settings. studio export --format safetensors --help lists all formats."
        return
    if named.format == TENSORBOARD:
        return  # has no settings
    from studio.engine import catalog

    form = _format(named.format, named.out)
    add_setting_flags(parser, form.Config, f"settings of {form.name}")
    helps = {other.name: other.help for other in catalog.model_exports().values()} | {TENSORBOARD: _TENSORBOARD_HELP}
    formats = "\n".join(f"  {name:12}{about}" for name, about in helps.items())
    parser.epilog = f"formats (each has its own settings: --format NAME --help):\n{formats}"


def export(args: argparse.Namespace) -> int:
    """Export a model and verify the file; or export the curves of a run to TensorBoard."""
    if args.format == TENSORBOARD:
        return _export_tensorboard(args)
    from studio.engine.devices import detection

    reporter, path = reporter_for(args), find_run(args.run_name)
    form = _format(args.format, args.out)
    config = form.Config(**typed_settings(args, form.Config))
    target = args.out
    if target is None:
        target = path / EXPORTS_FOLDER / f"{files.output_name(RunDir(path).record().name)}{form.suffix}"
    # Exports are fp32. Marking the CPU as probed skips the probe for its fastest precision, which takes seconds.
    cpu = dataclasses.replace(detection.find_device("cpu"), probed=True)
    export_model(load_model(path, args, cpu, reporter), form.name, target, reporter, config)
    return 0


def export_model(
    model: TrainedModel, format_name: str, target: Path, reporter: Reporter, config: Config | None = None
) -> Exported:
    """Export a model; print the files, the largest difference from the live model, and how to load them."""
    from studio.engine.models.exporting import export

    done = run_job(export(model, format_name, target, config), reporter, Exported)
    written = " and ".join(str(path) for path in done.paths)
    same = describe_agreement(done.difference)
    reporter.print(f"Wrote {written} ({memory(done.size_bytes)})")
    reporter.print(f"Verified against the model at step {model.step:,}: outputs are {same}.")
    if done.card:
        reporter.print(f"Model card: {done.card[1]}")
    for language, snippet in done.snippets.items():
        reporter.print(f"\nUse it in {language}:\n\n{snippet}")
    return done


def _format(name: str | None, out: Path | None) -> ModelExport:
    """Return the format called `name`, or the format for the suffix of `out`, or the first. Raises UsageError."""
    from studio.engine import catalog

    forms = catalog.model_exports()
    if name:
        return find_plugin(forms, name, "export format")
    if out is None or not out.suffix or out.is_dir():
        return next(iter(forms.values()))
    for form in forms.values():
        if form.suffix == out.suffix.lower():
            return form
    endings = ", ".join(form.suffix for form in forms.values())
    raise UsageError(f"There is no export format for {out.suffix}.", f"Let --out end in one of: {endings}.")


def _export_tensorboard(args: argparse.Namespace) -> int:
    """Write the curves, samples and settings of a run into a folder for TensorBoard."""
    if args.checkpoint != "best":
        raise UsageError("The TensorBoard export covers the whole run.", "Remove --checkpoint.")
    reporter, path = reporter_for(args), find_run(args.run_name)
    done = run_job(save_event_log(path, args.out or path / EXPORTS_FOLDER / TENSORBOARD), reporter, EventLogSaved)
    reporter.print(f"Wrote curves, samples and settings into {done.path}")
    reporter.print(f"View them:  {command_line('tensorboard', '--logdir', str(done.path.parent))}")
    return DONE
