"""Pictures in a study's `about`, which the front page shows as Markdown.

The page holds the bytes of its pictures, and is mailed and shipped. So a picture is one of the
project's own figures: no other file of the machine, and nothing of the web.
"""

import posixpath
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

ENDINGS = (".svg", ".png")
PAGE = "results/study"
"""Where the front page of a study lies, from the root of the project."""
FIGURES = "figures/"


def refuse_pictures(about: str) -> str:
    """The text as it is, where each picture in it is one of the project's figures.

    Raises:
        ValueError: A picture has another ending than .svg or .png, or lies elsewhere.
    """
    for path in _pictures(about):
        place = posixpath.normpath(posixpath.join(PAGE, path))
        ending = PurePosixPath(place).suffix
        if not place.startswith(FIGURES) or ending not in ENDINGS:
            raise ValueError(
                f"the picture {path} is none of the project's figures; a picture is an .svg or .png"
                " file below figures/, by its path from the page: ../../figures/NAME.svg"
            )
    return about


def _pictures(markdown: str) -> list[str]:
    """The paths of all pictures in a text."""
    if "![" not in markdown:
        return []
    try:
        # Here, because few texts have a picture, and programs that make no page lack the package.
        from markdown_it import MarkdownIt
    except ModuleNotFoundError:
        return []
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.validateLink = lambda url: True  # it would take a file: of the machine for plain words
    blocks = parser.parse(markdown)
    inside = [token for block in blocks for token in block.children or ()]
    return [str(token.attrs["src"]) for token in _all(inside) if token.type == "image"]


def _all(tokens: Iterable[Any]) -> Iterator[Any]:
    """The tokens, and those inside each, as of a picture in the words of another."""
    for token in tokens:
        yield token
        yield from _all(token.children or ())
