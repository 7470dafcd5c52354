"""A report of experiments: one page of HTML that needs nothing else, to hand out, to print and to keep."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.core import files
from studio.core.curves import TINTS
from studio.core.wording import count, decimal, duration, number
from studio.exports.html_page import html_page
from studio.exports.plot import dress, new_axes
from studio.lab.outcome import Picture, Plot, Table
from studio.lab.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 3.4  # inches of a plot, which is 8 wide
_FEW_DECADES = 1e3  # high for low: there is room for numbers in between
_SPRITES_WIDTH = 768  # of the page's pixels, at most


def save_report(path: Path, results: Sequence[Result]) -> Path:
    """Write the page for these results. A file that is there is not replaced: the name used is returned.

    Raises ExportError.
    """
    target = files.free_path(path)
    with files.exporting(target):
        files.write_atomic(target, page_of(results).encode("utf-8", "replace"))
    return target


def page_of(results: Sequence[Result]) -> str:
    """The page as text."""
    title = results[0].title if len(results) == 1 else "Experiments"
    return html_page(f"{title} - Sprite Training Studio", "\n".join(map(_section, results)), _STYLE, width_rem=52)


def _section(result: Result) -> str:
    outcome = result.outcome
    parts = [
        f"<h1>{html.escape(result.title)}</h1>",
        f'<p class="question">{html.escape(result.question)}</p>',
        *(f"<p>{html.escape(sentence)}</p>" for sentence in outcome.sentences),
        *(_figure(plot) for plot in outcome.plots),
        *(_sprites(picture) for picture in outcome.pictures),
        *(_table(table) for table in outcome.tables),
        "<h2>What was measured</h2>",
        _rows(_circumstances(result)),
        "<h2>The same in plain PyTorch</h2>",
        f"<pre><code>{html.escape(result.code)}</code></pre>",
    ]
    name, address = result.read_on
    if address:
        parts.append(f'<p>Read on at PyTorch: <a href="{html.escape(address)}">{html.escape(name)}</a></p>')
    return f"<section>\n{chr(10).join(parts)}\n</section>"


def _circumstances(result: Result) -> Iterable[tuple[str, str]]:
    yield (
        "Sprites",
        f"{result.data_title}, {count(result.data_count, 'sprite')} of {result.size} x {result.size} pixels",
    )
    if result.run:
        yield "Run", result.looked_into()
    yield "Recipe", result.recipe
    yield "Device", f"{result.device_name} ({result.device})"
    yield "When", f"{result.created.replace('T', ' ')}, in {duration(result.took_s)}"
    yield "Versions", ", ".join(f"{name} {version}" for name, version in result.versions.items())
    yield "Settings", ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in result.settings.items())


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    cells = (f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{''.join(cells)}</table>"


def _table(table: Table) -> str:
    sides = ["right" if column.startswith(">") else "left" for column in table.columns]
    head = "".join(
        f'<th class="{side}">{html.escape(column.removeprefix(">"))}</th>'
        for side, column in zip(sides, table.columns, strict=True)
    )
    rows = (
        "".join(f'<td class="{side}">{html.escape(text)}</td>' for side, text in zip(sides, row, strict=True))
        for row in table.rows
    )
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return f'<table class="figures"><tr>{head}</tr>{body}</table>'


def _figure(plot: Plot) -> str:
    data = base64.b64encode(draw_plot(plot)).decode()
    return f'<img class="plot" alt="{html.escape(plot.title)}" src="data:image/svg+xml;base64,{data}">'


def _sprites(picture: Picture) -> str:
    """At a whole number of the page's pixels for each of its own."""
    title, width = html.escape(picture.title), picture.pixels().shape[1]
    shown = max(1, _SPRITES_WIDTH // width) * width
    alt = html.escape(f"{picture.title}. {picture.about}".removesuffix(" "))
    image = f'<img class="sprites" width="{shown}" alt="{alt}" src="data:image/png;base64,{picture.png}">'
    return f"<figure><figcaption>{title}</figcaption>{image}</figure>"


def draw_plot(plot: Plot) -> bytes:
    """The plot as SVG."""
    import matplotlib

    figure, axes = new_axes(_HEIGHT)
    for line, tint in zip(plot.lines, TINTS, strict=False):
        axes.plot(
            line.x, line.y, color=tint, label=line.name, linewidth=1.6, marker="o" if line.dots else "", markersize=4
        )
    for mark in plot.marks:
        axes.axvline(mark.x, color="#6a727c", linewidth=1, linestyle=":")
        axes.annotate(
            mark.words, (mark.x, 1), xycoords=("data", "axes fraction"), xytext=(4, -4), textcoords="offset points",
            va="top", fontsize=9, color="#22262b",
        )  # fmt: skip
    _scale(axes, plot)
    dress(axes, plot.title, plot.x.title, plot.y.title)
    if len(plot.lines) > 1:
        axes.legend(fontsize=9, edgecolor="none")
    target = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": plot.title}):  # the same plot is the same file
        figure.savefig(target, format="svg", metadata={"Date": None})
    return target.getvalue()


def _scale(axes: Axes, plot: Plot) -> None:
    """Logarithmic axes where they are asked for; few points on one are all named."""
    from matplotlib import ticker

    if plot.x.log:
        axes.set_xscale("log")
        if places := plot.named_places():
            axes.xaxis.set_major_locator(ticker.FixedLocator(places))
            axes.xaxis.set_minor_locator(ticker.NullLocator())
            axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number(round(value))))
    if plot.y.log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        written = ticker.FuncFormatter(lambda value, _: decimal(value))  # 0.5, not 5 x 10 to the power of -1
        axes.yaxis.set_major_formatter(written)
        axes.yaxis.set_minor_locator(ticker.LogLocator(subs=(2.0, 5.0)))
        axes.yaxis.set_minor_formatter(written if high < _FEW_DECADES * low else ticker.NullFormatter())
    else:
        axes.set_ylim(bottom=0)


_STYLE = """\
section + section { margin-top: 4rem; }
.question { font-size: 1.15rem; opacity: .75; }
.plot { width: 100%; border-radius: 6px; margin: .5rem 0; }
figure { margin: 1rem 0; }
.sprites { image-rendering: pixelated; background: #8882; }
table { margin: .5rem 0; }
.right { text-align: right; }
.figures { font-variant-numeric: tabular-nums; }
pre { padding: .75rem 1rem; overflow-x: auto; background: #8881; font-size: .85rem; }
"""
