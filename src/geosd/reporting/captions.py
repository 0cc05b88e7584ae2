"""The caption of a table or figure, with links to the numbers that it shows."""

from __future__ import annotations

import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from geosd.claims.published import paper_family
from geosd.reporting.specs import output_specs


def output_title(name: str) -> str:
    """The title of a table or figure: what it shows, capitalised."""
    title = output_specs()[name].title
    return f"{title[0].upper()}{title[1:]}"


def caption_words(name: str, models: Iterable[str]) -> str:
    """The words of an output's caption; they speak of the paper where a model stands for its."""
    return output_specs()[name].words(any(map(paper_family, models)))


def caption_markdown(
    name: str, models: Iterable[str], source_data: Sequence[Path], folder: Path
) -> str:
    """The caption of an output as Markdown: its title, its words, its source data.

    Args:
        name: Of the table or figure.
        models: Those that it shows.
        source_data: The tidy files that hold its numbers.
        folder: Of the page; links are relative to it.
    """
    paths = {path: Path(os.path.relpath(path, folder)).as_posix() for path in source_data}
    named = Counter(path.name for path in paths)  # one of several of a name is called by its path
    links = [f"[{path.name if named[path.name] == 1 else to}]({to})" for path, to in paths.items()]
    words = [f"**{output_title(name)}.** {caption_words(name, models)}"]
    words += [f"Source data: {', '.join(links)}."] if links else ["No run enters it."]
    paragraphs = [textwrap.fill(text, 100, break_long_words=False) for text in words]
    return "\n\n".join(paragraphs) + "\n"
