"""Build self-contained HTML pages for model cards and reports."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Sequence

MEDIA_STYLE = """\
.wide { overflow-x: auto; }
.plot { width: 100%; min-width: 32rem; border-radius: 6px; margin: .5rem 0; }
figure { margin: 1rem 0; }
.pixels { image-rendering: pixelated; background: #8882; }
table { margin: .5rem 0; }
.right { text-align: right; }
.figures { font-variant-numeric: tabular-nums; }
.figures td { white-space: pre-wrap; }
.figures th + th, .figures td + td { padding-left: .5rem; }
"""  # for the elements made by the functions below; wide tables and plots scroll sideways on narrow screens
_INDENT = re.compile("^ +", re.MULTILINE)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: {width_rem}rem; margin: 2rem auto; padding: 0 1rem; }}
h2 {{ font-size: 1.1rem; margin-top: 2rem; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: .25rem .5rem .25rem 0; border-bottom: 1px solid #8884; }}
th {{ font-weight: 600; }}
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""


def html_page(title: str, body: str, style: str, width_rem: int) -> str:
    """Return an HTML page. body: HTML. style: additional CSS. width_rem: maximum width of the text in rem."""
    return _PAGE.format(title=html.escape(title), body=body, style=style, width_rem=width_rem)


def key_value_table(rows: Iterable[tuple[str, str]]) -> str:
    """Return an HTML table with a row per pair (name, text)."""
    cells = (f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{''.join(cells)}</table>"


def numeric_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table of texts under headings. Columns whose heading starts with '>' are right-aligned."""
    sides = ["right" if column.startswith(">") else "left" for column in columns]

    def line(tag: str, texts: Iterable[str]) -> str:
        pairs = zip(sides, texts, strict=True)
        cells = (f'<{tag} class="{side}">{_kept_indent(html.escape(text))}</{tag}>' for side, text in pairs)
        return f"<tr>{''.join(cells)}</tr>"

    head = line("th", (column.removeprefix(">") for column in columns))
    body = "".join(line("td", row) for row in rows)
    return f'<div class="wide"><table class="figures">{head}{body}</table></div>'


def _kept_indent(text: str) -> str:
    """Return a text whose leading spaces don't break, so that a browser keeps the indentation in a narrow column."""
    return _INDENT.sub(lambda found: len(found[0]) * "&nbsp;", text)


def plot_image(title: str, svg: bytes, about: str = "") -> str:
    """Return an HTML image of a plot, as wide as the page. about: description for screen readers."""
    data, alt = base64.b64encode(svg).decode(), html.escape(f"{title}. {about}" if about else title)
    return f'<div class="wide"><img class="plot" alt="{alt}" src="data:image/svg+xml;base64,{data}"></div>'


def pixel_image(title: str, png: str, width_px: int, most_px: int, about: str = "") -> str:
    """Return an HTML figure with pixel art and a title, enlarged by an integer to at most `most_px` wide.

    png: base64. width_px: width of the image. about: description for screen readers.
    """
    shown_px, alt = max(1, most_px // width_px) * width_px, html.escape(f"{title}. {about}" if about else title)
    image = f'<img class="pixels" width="{shown_px}" alt="{alt}" src="data:image/png;base64,{png}">'
    return f"<figure><figcaption>{html.escape(title)}</figcaption>{image}</figure>"
