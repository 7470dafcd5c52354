"""`studio help`: list the topics of the guide, or print a topic."""

from __future__ import annotations

import argparse
import sys

from studio.cli.reporting import reporter_for
from studio.core import guide

_COLUMNS = 100  # at most, where the terminal is wider


def show_help(args: argparse.Namespace) -> int:
    """Print a topic or a section of the guide: styled in a terminal, as Markdown elsewhere. Raises UsageError."""
    reporter = reporter_for(args)
    if args.topic is None:
        for topic in guide.topics():
            reporter.write_json({"type": "GuideTopic", "name": topic.name, "title": topic.title})
        reporter.print_table(("topic", "title"), [(topic.name, topic.title) for topic in guide.topics()])
        return 0
    text = guide.section_text(args.topic)
    reporter.write_json({"type": "GuideTopic", "name": args.topic, "text": text})
    if args.json or not sys.stdout.isatty():
        reporter.print(text)
        return 0
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console()
    console.print(Markdown(text), width=min(console.width, _COLUMNS))
    return 0
