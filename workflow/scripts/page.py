"""Turn Markdown, or YAML as it stands, into a page by itself: `page.py SOURCE PAGE.html`."""

import base64
import mimetypes
import re
import sys
from html import escape
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from geosd.files import write_text
from geosd.reporting.study_page import heading_anchor

STYLE = """
:root { color-scheme: light dark; --ink: light-dark(#1a1a1a, #e6e6e6); }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 74rem; color: var(--ink); }
body { margin: 0 auto; padding: 2rem 2.5rem 4rem; }
body { background: light-dark(#fff, #16181d); }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .8rem; }
p, ul { max-width: 76ch; }
table { border-collapse: collapse; border-block: 2px solid var(--ink); margin: 1.2rem 0; }
table { display: block; width: fit-content; max-width: 100%; overflow-x: auto; }
th { border-bottom: 1px solid var(--ink); text-align: left; vertical-align: bottom; }
th, td { padding: .3rem .75rem; vertical-align: top; }
td { font-variant-numeric: tabular-nums; }
td { white-space: nowrap; }
tr:nth-child(even) td { background: light-dark(#f4f4f4, #24272e); }
td.words { white-space: normal; min-width: 24ch; text-align: left !important; }
.paper { color: light-dark(#5a5a5a, #adadad); font-weight: normal; padding-left: .3rem; }
.agrees { color: light-dark(#00694e, #4fd0a8); font-weight: 600; }
.opposite { color: light-dark(#a33c00, #ff9f6b); font-weight: 600; }
code, pre { font: .9em/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; }
.picture { background: #fff; border-radius: .4rem; padding: .75rem; overflow-x: auto; }
.picture { width: fit-content; max-width: 100%; box-sizing: border-box; }
.picture { border: 1px solid light-dark(#ddd, transparent); }
img { display: block; max-width: 100%; height: auto; }
img.wide { min-width: 38rem; }
@media (max-width: 640px) { body { padding: 1rem; } p, li { overflow-wrap: anywhere; } }
"""

# Words of the ledger that have a colour.
COLOURED_WORDS = ("agrees", "opposite")
PIXELS_A_POINT = 150 / 72
NARROW = 640  # pixels; a wider picture is moved sideways on a telephone, or no letter can be read
LONGEST_NUMBER = 32  # characters; a longer cell holds words, which may be broken into lines


def markdown_page(markdown: str, folder: Path = Path()) -> str:
    """A whole HTML page with the Markdown in it; HTML inside the Markdown is shown as text.

    Pictures, whose paths are from `folder`, are put into the page: it needs no other file.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    mark_cells(tokens)
    put_pictures_in(tokens, folder)
    titles = name_headings(tokens)
    return html_page(parser.renderer.render(tokens, parser.options, {}), *titles[:1])


def html_page(body: str, title: str = "GeoSD") -> str:
    """A whole HTML page of the report with its style."""
    narrow = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    named = f"<title>{escape(title)}</title>"
    head = f'<meta charset="utf-8">{narrow}{named}<style>{STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head>\n<body><main>\n{body}</main></body>'


def name_headings(tokens: list[Token]) -> list[str]:
    """Give each heading of a page the anchor that links name; return the headings."""
    titles = []
    for token, inside in zip(tokens, tokens[1:], strict=False):
        if token.type == "heading_open":
            token.attrSet("id", heading_anchor(inside.content))
            titles.append(inside.content)
    return titles


def put_pictures_in(tokens: list[Token], folder: Path) -> None:
    """Put the bytes of each picture where its path, from a folder, stands, on a card of its own.

    An SVG has 150 pixels an inch: letters of a figure are as large as those of the page then.
    """
    for paragraph, token in zip(tokens, tokens[1:], strict=False):
        for picture in token.children or ():
            if picture.type != "image":
                continue
            path = folder / str(picture.attrs["src"])
            kind, _ = mimetypes.guess_type(path.name)
            data = path.read_bytes()
            if points := re.search(rb'<svg[^>]* width="([\d.]+)pt"', data):
                width = int(float(points[1]) * PIXELS_A_POINT)
                picture.attrSet("width", str(width))
                if width > NARROW:
                    picture.attrSet("class", "wide")
            picture.attrSet("src", f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}")
            if len(token.children or ()) == 1:
                paragraph.attrJoin("class", "picture")


def mark_cells(tokens: list[Token]) -> None:
    """Mark in a page's tables the paper's columns, the words on claims, and cells of many words."""
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
            if token.type == "td_open" and inside.content in COLOURED_WORDS:
                token.attrJoin("class", inside.content)
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
