"""Turn Markdown, or YAML as it stands, into a page by itself: `page.py SOURCE PAGE.html [BACK]`.

BACK is the page that this one belongs to, from its folder; a link at the top leads there.
"""

import base64
import os
import re
import sys
from html import escape
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from geosd.files import write_text
from geosd.reporting.study_page import study_page_anchor

STYLE = Path(__file__).parents[1] / "report/page.css"

# Words of the ledger that have a colour, and what they are in a column of a model.
COLOURED_WORDS = {"agrees": "agrees", "✓": "agrees", "opposite": "opposite", "✗": "opposite"}
PIXELS_A_POINT = 150 / 72
NARROW = 640  # pixels; a wider picture is moved sideways on a telephone, or no letter can be read
FIGURES = Path("figures")  # of the project, whose root is the working directory
PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}  # what a page may show, by ending
WEB = re.compile(r"([a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)  # how an address of the web begins
LONGEST_NUMBER = 32  # characters; a longer cell holds words, which may be broken into lines


def markdown_page(markdown: str, folder: Path = Path(), back: str = "") -> str:
    """A whole HTML page with the Markdown in it; HTML inside the Markdown is shown as text.

    Pictures, whose paths are from `folder`, are put into the page: it needs no other file. A
    picture of the web becomes a link.

    Raises:
        PictureError: A picture is none of the project's figures, or is not there.
    """
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(markdown)
    mark_cells(tokens)
    mark_grey_lines(tokens)
    put_pictures_in(tokens, folder)
    titles = name_headings(tokens)
    parser.add_render_rule("table_open", _region)
    parser.add_render_rule("table_close", lambda *of: "</table>\n</div>\n")
    body = parser.renderer.render(with_sections(tokens), parser.options, {})
    return html_page(body, titles[0] if titles else "GeoSD", back)


def html_page(body: str, title: str = "GeoSD", back: str = "") -> str:
    """A whole HTML page of the report with its style, and the way to its contents and back."""
    head = '<meta charset="utf-8">'
    head += '<meta name="viewport" content="width=device-width, initial-scale=1">'
    head += f"<title>{escape(title)}</title>"
    head += f"<style>{STYLE.read_text(encoding='utf-8')}</style>"
    ways = '<a class="skip" href="#main">Skip to the contents</a>'
    if back:  # inside Snakemake's report the page is data, from where no relative link leads
        ways += f'<nav><a href="{escape(back)}">Back to the study</a></nav>'
        ways += "<script>if (location.protocol === 'data:') document.currentScript"
        ways += ".previousElementSibling.remove()</script>"
    main = f'<main id="main" tabindex="-1">\n{body}</main>'
    return f'<!doctype html><html lang="en"><head>{head}</head>\n<body>{ways}{main}</body></html>'


def _region(renderer: object, tokens: list[Token], at: int, *of: object) -> str:
    """The beginning of a table, in a region that scrolls by keys too and says whose it is."""
    label = "Table"
    for token, inside in pairwise(tokens[: at + 1]):
        if token.type == "heading_open":
            label = f"Table: {inside.content}"
    return f'<div class="table" role="region" tabindex="0" aria-label="{escape(label)}"><table>\n'


def mark_grey_lines(tokens: list[Token]) -> None:
    """Mark the paragraphs that are emphasised as a whole: what a page says in passing."""
    for paragraph, inside in pairwise(tokens):
        kinds = [token.type for token in inside.children or ()]
        if kinds[:1] == ["em_open"] and kinds.index("em_close") == len(kinds) - 1:
            paragraph.attrJoin("class", "made")


def with_sections(tokens: list[Token]) -> list[Token]:
    """A page's head, all before its second headings, and each of these with what follows it.

    On a wide window the head and a picture behind it stand side by side, as a picture and its
    caption do.
    """
    wrapped = [Token("html_block", "", 0, content='<div class="head">\n')]
    closing = "</div>\n"
    for token in tokens:
        if token.type == "heading_open" and token.tag == "h2":
            wrapped.append(Token("html_block", "", 0, content=f"{closing}<section>\n"))
            closing = "</section>\n"
        wrapped.append(token)
    return [*wrapped, Token("html_block", "", 0, content=closing)]


def name_headings(tokens: list[Token]) -> list[str]:
    """Give each heading of a page the anchor that links name; return the headings."""
    titles = []
    for token, inside in pairwise(tokens):
        if token.type == "heading_open":
            token.attrSet("id", study_page_anchor(inside.content))
            titles.append(inside.content)
    return titles


class PictureError(ValueError):
    """A picture that a page must not or cannot show; names the picture, and what is allowed."""


def put_pictures_in(tokens: list[Token], folder: Path) -> None:
    """Put the bytes of each picture where its path, from a folder, stands, on a card of its own.

    An SVG has 150 pixels an inch: letters of a figure are as large as those of the page then.
    """
    for paragraph, token in pairwise(tokens):
        children = token.children or []
        for place, picture in enumerate(children):
            if picture.type != "image":
                continue
            source = str(picture.attrs["src"])
            if WEB.match(source):
                children[place] = _link_to_picture(picture, source)
                continue
            _put_in(picture, picture_file(source, folder))
            if len(children) == 1:
                paragraph.attrJoin("class", "picture")


def _put_in(picture: Token, file: Path) -> None:
    """Give a picture the bytes of its file, and an SVG its width."""
    data = file.read_bytes()
    points = re.search(rb'<svg[^>]* width="([\d.]+)pt"', data)
    if points:
        width = int(float(points[1]) * PIXELS_A_POINT)
        picture.attrSet("width", str(width))
        if width > NARROW:
            picture.attrSet("class", "wide")
    kind = PICTURES[file.suffix.lower()]
    text = base64.b64encode(data).decode("ascii")
    picture.attrSet("src", f"data:{kind};base64,{text}")


def picture_file(source: str, folder: Path) -> Path:
    """The file of a picture that Markdown in a folder names: one of the project's figures.

    `..` is taken away before links are followed: where results/ is a link to another disk,
    results/quick/../../figures is this project's figures/, and nothing next to the link's target.

    Raises:
        PictureError: It lies elsewhere, is of another kind, or is not there.
    """
    path = Path(os.path.normpath(folder / unquote(source)))
    file = path.resolve()
    named = f"the picture {source} of a page in {folder}"
    allowed = (
        f"Hint: a page shows pictures below {FIGURES}/ alone, which end in"
        f" {' or '.join(PICTURES)}; name such a file, or take the picture out of the text."
    )
    if file.suffix.lower() not in PICTURES or not file.is_relative_to(FIGURES.resolve()):
        raise PictureError(f"{path}: {named} is none of this project's figures.\n{allowed}")
    if not file.is_file():
        raise PictureError(f"{path}: {named} is not there.\n{allowed}")
    return file


def _link_to_picture(picture: Token, source: str) -> Token:
    """A picture of the web as a link of its words: a page needs no other file and no network."""
    link = f'<a href="{escape(source)}">{escape(picture.content or source)}</a>'
    return Token("html_inline", "", 0, content=link)


def mark_cells(tokens: list[Token]) -> None:
    """Mark in a page's tables the paper's columns, the words on claims, and cells of many words."""
    of_paper: set[int] = set()  # columns of the present table
    column = 0
    for token, inside in pairwise(tokens):
        if token.type == "table_open":
            of_paper.clear()
        elif token.type == "tr_open":
            column = 0
        elif token.type in ("th_open", "td_open"):
            is_head = token.type == "th_open"
            if is_head:
                token.attrSet("scope", "col")
                if inside.content == "paper":
                    of_paper.add(column)
            if column in of_paper:
                token.attrJoin("class", "paper")
            first_word = inside.content.partition(" ")[0]
            if first_word in COLOURED_WORDS and not is_head:
                token.attrJoin("class", COLOURED_WORDS[first_word])
            if len(inside.content) > LONGEST_NUMBER:
                token.attrJoin("class", "words")
            column += 1


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:3])
    back = "".join(sys.argv[3:])
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".md":
        try:
            page = markdown_page(text, source.parent, back)
        except PictureError as error:
            sys.exit(str(error))
    else:
        page = html_page(f"<pre>{escape(text)}</pre>\n", back=back)
    write_text(target, page)
