"""Turn Markdown, or YAML as it stands, into a page by itself: `page.py SOURCE PAGE.html`."""

from __future__ import annotations

import base64
import mimetypes
import sys
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from geosd.files import write_text

STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#1a1a1a, #e6e6e6); }
body { font: 16px/1.55 system-ui, sans-serif; margin: 2rem 2.5rem 4rem; color: var(--ink); }
body { background: light-dark(#fff, #16181d); }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .8rem; }
p, ul { max-width: 76ch; }
table { border-collapse: collapse; border-block: 2px solid var(--ink); margin: 1.2rem 0; }
table { display: block; width: fit-content; max-width: 100%; overflow-x: auto; }
th { border-bottom: 1px solid var(--ink); text-align: left; vertical-align: bottom; }
th, td { padding: .3rem .75rem; vertical-align: top; }
td { font-variant-numeric: tabular-nums; }
td:first-child, td[style*=right] { white-space: nowrap; }
tr:nth-child(even) td { background: light-dark(#f4f4f4, #24272e); }
td.words { white-space: normal; min-width: 24ch; text-align: left !important; }
.paper { color: light-dark(#5a5a5a, #adadad); font-weight: normal; padding-left: .3rem; }
.reproduced { color: light-dark(#00694e, #4fd0a8); font-weight: 600; }
.not-reproduced { color: light-dark(#a33c00, #ff9f6b); font-weight: 600; }
code, pre { font: .9em/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; }
img { max-width: min(100%, 60rem); background: #fff; }
@media (max-width: 640px) { body { margin: 1rem; } p, li { overflow-wrap: anywhere; } }
"""

# Words in whose colour the eye finds a verdict.
COLOURED_VERDICTS = ("reproduced", "not reproduced")
LONGEST_NUMBER = 32  # characters; a longer cell holds words, which may be broken into lines


def markdown_page(markdown: str, folder: Path = Path()) -> str:
    """A whole HTML page with the Markdown in it; HTML inside the Markdown is shown as text.

    Pictures, whose paths are from `folder`, are put into the page: it needs no other file.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    mark_cells(tokens)
    put_pictures_in(tokens, folder)
    return html_page(parser.renderer.render(tokens, parser.options, {}))


def html_page(body: str) -> str:
    """A whole HTML page of the report with its style."""
    narrow = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head = f'<meta charset="utf-8">{narrow}<style>{STYLE}</style>'
    return f'<!doctype html><html lang="en">{head}\n{body}'


def put_pictures_in(tokens: list[Token], folder: Path) -> None:
    """Put the bytes of each picture where its path, from a folder, stands."""
    for picture in (part for token in tokens for part in token.children or ()):
        if picture.type == "image":
            path = folder / str(picture.attrs["src"])
            kind, _ = mimetypes.guess_type(path.name)
            data = base64.b64encode(path.read_bytes()).decode("ascii")
            picture.attrs["src"] = f"data:{kind};base64,{data}"


def mark_cells(tokens: list[Token]) -> None:
    """Mark in a page's tables the paper's columns, the verdicts, and cells full of words."""
    paper: set[int] = set()
    column = 0
    for token, inside in zip(tokens, tokens[1:], strict=False):
        if token.type == "table_open":
            paper = set()
        elif token.type == "tr_open":
            column = 0
        elif token.type in ("th_open", "td_open"):
            if token.type == "th_open" and inside.content == "paper":
                paper.add(column)
            if column in paper:
                token.attrJoin("class", "paper")
            if token.type == "td_open" and inside.content in COLOURED_VERDICTS:
                token.attrJoin("class", inside.content.replace(" ", "-"))
            if len(inside.content) > LONGEST_NUMBER:
                token.attrJoin("class", "words")
            column += 1


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    text = source.read_text(encoding="utf-8")
    page = (
        markdown_page(text, source.parent)
        if source.suffix == ".md"
        else html_page(f"<pre>{escape(text)}</pre>\n")
    )
    write_text(target, page)
