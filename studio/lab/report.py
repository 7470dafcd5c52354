"""A report of experiments: one page of HTML that needs nothing else, to hand out, to print and to keep."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from studio.core import files
from studio.core.curves import CURVE_COLOURS
from studio.core.formatting import count, decimal, duration, number
from studio.exports.html_page import MEDIA_STYLE, html_page, key_value_table, numeric_table, pixel_image, plot_image
from studio.exports.plot import new_axes, style_axes, to_svg
from studio.lab.outcome import Picture, Plot
from studio.lab.results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 3.4  # inches of a plot, which is 8 wide
_FEW_DECADES = 1e3  # high for low: there is room for numbers in between
_SPRITES_WIDTH = 768  # of the page's pixels, at most


def save_report(path: Path, results: Sequence[Result], *, replace: bool = False) -> Path:
    """Write the page for these results. A file that is there is not replaced unless `replace` says so.

    Returns the name used. Raises ExportError.
    """
    target = files.output_path(path, replace=replace)
    with files.wrap_export_errors(target):
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
        *(plot_image(plot.title, draw_plot(plot)) for plot in outcome.plots),
        *(_sprites(picture) for picture in outcome.pictures),
        *(numeric_table(table.columns, table.rows) for table in outcome.tables),
        "<h2>What was measured</h2>",
        key_value_table(_circumstances(result)),
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


def _sprites(picture: Picture) -> str:
    width = picture.pixels().shape[1]
    return pixel_image(picture.title, picture.png, width, _SPRITES_WIDTH, picture.about)


def draw_plot(plot: Plot) -> bytes:
    """The plot as SVG."""
    figure, axes = new_axes(_HEIGHT)
    for line, tint in zip(plot.lines, CURVE_COLOURS, strict=False):
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
    style_axes(axes, plot.title, plot.x.title, plot.y.title)
    if len(plot.lines) > 1:
        axes.legend(fontsize=9, edgecolor="none")
    return to_svg(figure, plot.title)


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


_STYLE = f"""\
{MEDIA_STYLE}section + section {{ margin-top: 4rem; }}
.question {{ font-size: 1.15rem; opacity: .75; }}
pre {{ padding: .75rem 1rem; overflow-x: auto; background: #8881; font-size: .85rem; }}
"""
