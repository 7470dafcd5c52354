"""Build self-contained HTML pages for model cards and reports."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence

MEDIA_STYLE = """\
.plot { width: 100%; border-radius: 6px; margin: .5rem 0; }
figure { margin: 1rem 0; }
.pixels { image-rendering: pixelated; background: #8882; }
table { margin: .5rem 0; }
.right { text-align: right; }
.figures { font-variant-numeric: tabular-nums; }
.figures td { white-space: pre-wrap; }
"""  # for the elements made by the functions below
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
        cells = (f'<{tag} class="{side}">{html.escape(text)}</{tag}>' for side, text in zip(sides, texts, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    head = line("th", (column.removeprefix(">") for column in columns))
    return f'<table class="figures">{head}{"".join(line("td", row) for row in rows)}</table>'


def plot_image(title: str, svg: bytes) -> str:
    """Return an HTML image of a plot, as wide as the page."""
    data = base64.b64encode(svg).decode()
    return f'<img class="plot" alt="{html.escape(title)}" src="data:image/svg+xml;base64,{data}">'


def pixel_image(title: str, png: str, width_px: int, most_px: int, about: str = "") -> str:
    """Return an HTML figure with pixel art and a title, enlarged by an integer to at most `most_px` wide.

    png: base64. width_px: width of the image. about: description for screen readers.
    """
    shown_px, alt = max(1, most_px // width_px) * width_px, html.escape(f"{title}. {about}" if about else title)
    image = f'<img class="pixels" width="{shown_px}" alt="{alt}" src="data:image/png;base64,{png}">'
    return f"<figure><figcaption>{html.escape(title)}</figcaption>{image}</figure>"
