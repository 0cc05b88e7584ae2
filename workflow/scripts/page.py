"""Turn a Markdown table into a page that the report can show: `page.py TABLE.md PAGE.html`."""

from __future__ import annotations

import sys
from pathlib import Path

from markdown_it import MarkdownIt

from geosd.files import write_text

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem; color: #1a1a1a; }
table { border-collapse: collapse; border-block: 2px solid #1a1a1a; }
th { border-bottom: 1px solid #1a1a1a; text-align: left; }
th, td { padding: .25rem .8rem; font-variant-numeric: tabular-nums; vertical-align: top; }
tr:nth-child(even) td { background: #f4f4f4; }
"""


def page(markdown: str) -> str:
    """A whole HTML page with the Markdown in it; HTML inside the Markdown is shown as text."""
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    head = f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style>'
    return f"{head}\n{body}"


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    write_text(target, page(source.read_text(encoding="utf-8")))
