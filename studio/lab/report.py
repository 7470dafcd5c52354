"""Write a report about experiments: a self-contained HTML page to share, print and archive."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.core import files
from studio.core.config import value_text
from studio.core.curves import CURVE_COLOURS
from studio.core.formatting import axis_label, count, duration, local_time, number
from studio.exports.html_page import MEDIA_STYLE, html_page, key_value_table, numeric_table, pixel_image, plot_image
from studio.exports.plot import new_axes, style_axes, to_svg
from studio.lab.outcome import ROOM_FOR_MARKS, Plot
from studio.lab.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 3.4  # inches; plots are 8 inches wide
_FEW_DECADES = 1e3  # highest / lowest value: axes with a smaller range get labels at minor ticks
_WIDTH_PX = 768  # largest width of a picture on the page


def save_report(path: Path, results: Sequence[Result], *, replace: bool = False) -> Path:
    """Write results as an HTML page; return the page's path. Raises ExportError.

    replace: overwrite an existing file; otherwise the page gets a free name.
    """
    target = files.output_path(path, replace=replace)
    with files.wrap_export_errors(target):
        files.write_atomic(target, page_of(results).encode("utf-8", "replace"))
    return target


def page_of(results: Sequence[Result]) -> str:
    """Return a report's HTML, with a section per result."""
    title = results[0].title if len(results) == 1 else "Experiments"
    return html_page(f"{title} - Sprite Training Studio", "\n".join(map(_section, results)), _STYLE, width_rem=52)


def _section(result: Result) -> str:
    outcome = result.outcome
    parts = [
        f"<h1>{html.escape(result.title)}</h1>",
        f'<p class="question">{html.escape(result.question)}</p>',
        *(f"<p>{html.escape(sentence)}</p>" for sentence in outcome.sentences),
        *(plot_image(plot.title, draw_plot(plot), plot.describe()) for plot in outcome.plots),
        *(
            pixel_image(each.title, each.png, each.pixels().shape[1], _WIDTH_PX, each.about)
            for each in outcome.pictures
        ),
        *(numeric_table(table.columns, table.rows) for table in outcome.tables),
    ]
    parts += ["<h2>Measurement</h2>", key_value_table(_details(result))]
    parts += ["<h2>In plain PyTorch</h2>", f"<pre><code>{html.escape(result.code)}</code></pre>"]
    name, address = result.read_on
    if address:
        parts.append(f'<p>PyTorch documentation: <a href="{html.escape(address)}">{html.escape(name)}</a></p>')
    return f"<section>\n{chr(10).join(parts)}\n</section>"


def _details(result: Result) -> Iterable[tuple[str, str]]:
    sprites = count(result.data_count, "sprite")
    yield "Sprites", f"{result.data_title}, {sprites} of {result.size} x {result.size} pixels"
    if result.run:
        yield "Run", result.examined()
    yield "Recipe", result.recipe
    yield "Device", f"{result.device_name} ({result.device})"
    yield "Date", f"{local_time(result.created)}, in {duration(result.took_s)}"
    yield "Versions", ", ".join(f"{name} {version}" for name, version in result.versions.items())
    settings = (f"{name.replace('_', ' ')} {value_text(value)}" for name, value in result.settings.items())
    yield "Settings", ", ".join(settings)


def draw_plot(plot: Plot) -> bytes:
    """Draw an experiment's plot; return the SVG file."""
    figure, axes = new_axes(_HEIGHT)
    for line, tint in zip(plot.lines, CURVE_COLOURS, strict=False):
        marker = "o" if line.dots else ""
        axes.plot(line.x, line.y, color=tint, label=line.name, linewidth=1.6, marker=marker, markersize=4)
    for mark in plot.marks:
        axes.axvline(mark.x, color="#6a727c", linewidth=1, linestyle=":")
        axes.annotate(
            mark.words, (mark.x, 1), xycoords=("data", "axes fraction"), xytext=(4, -4), textcoords="offset points",
            va="top", fontsize=9, color="#22262b",
        )  # fmt: skip
    axes.margins(y=ROOM_FOR_MARKS if plot.marks else None)
    _scale(axes, plot)
    style_axes(axes, plot.title, plot.x.title, plot.y.title)
    if len(plot.lines) > 1:
        axes.legend(fontsize=9, edgecolor="none")
    return to_svg(figure, plot.title)


def _scale(axes: Axes, plot: Plot) -> None:
    """Set the axes' scales. A logarithmic axis with few points gets extra tick labels."""
    from matplotlib import ticker

    written = ticker.FuncFormatter(lambda value, _: axis_label(value))  # 0.5 instead of 5e-1, 10,000 instead of 10000
    for axis, is_log in ((axes.xaxis, plot.x.log), (axes.yaxis, plot.y.log)):
        if not is_log:
            axis.set_major_formatter(written)
    if plot.has_whole_x() and not plot.x.log:
        axes.xaxis.set_major_locator(ticker.MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    if plot.x.log:
        axes.set_xscale("log")
        if positions := plot.tick_positions():
            axes.xaxis.set_major_locator(ticker.FixedLocator(positions))
            axes.xaxis.set_minor_locator(ticker.NullLocator())
            axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: number(round(value))))
    if plot.y.log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.yaxis.set_major_formatter(written)
        axes.yaxis.set_minor_locator(ticker.LogLocator(subs=(2.0, 5.0)))
        axes.yaxis.set_minor_formatter(written if high < _FEW_DECADES * low else ticker.NullFormatter())
    else:
        axes.set_ylim(bottom=0)


_STYLE = f"""\
{MEDIA_STYLE}section + section {{ margin-top: 4rem; }}
.question {{ font-size: 1.15rem; opacity: .75; }}
pre {{ padding: .75rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; font-size: .85rem; }}
"""
