"""A page of HTML that needs nothing else: cards and reports are such."""

from __future__ import annotations

import html

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
    """The page. body: HTML, style: CSS beside that of all pages, width_rem: of its text, in letters' heights."""
    return _PAGE.format(title=html.escape(title), body=body, style=style, width_rem=width_rem)
