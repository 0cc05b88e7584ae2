"""The caption of a table or figure, with links to the numbers that it shows."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from geosd.reporting.specs import output_specs


def output_title(name: str) -> str:
    """The title of a table or figure: what it shows, capitalised."""
    title = output_specs()[name].title
    return f"{title[0].upper()}{title[1:]}"


def caption_markdown(name: str, source_data: Sequence[Path], folder: Path) -> str:
    """The caption of an output as Markdown: its title, its words, its source data.

    Args:
        name: Of the table or figure.
        source_data: The tidy files that hold its numbers.
        folder: Of the page; links are relative to it.
    """
    paths = {path: Path(os.path.relpath(path, folder)).as_posix() for path in source_data}
    named = Counter(path.name for path in paths)  # one of several of a name is called by its path
    links = [f"[{path.name if named[path.name] == 1 else to}]({to})" for path, to in paths.items()]
    words = [f"**{output_title(name)}.** {output_specs()[name].caption}"]
    words += [f"Source data: {', '.join(links)}."] if links else ["No run enters it."]
    paragraphs = [textwrap.fill(text, 100, break_long_words=False) for text in words]
    return "\n\n".join(paragraphs) + "\n"
