"""The front page of a study: what it is, then what it shows, then where everything else is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from geosd.models.published_architectures import published_architectures
from geosd.reporting.method_style import method
from geosd.reporting.study_page import NOT_RUN, StudyPage, study_sections

PAPER = "*Geometric Self-Distillation for Reasoning Generalization*"
APPENDIX = "Appendix: how this was made"


def front_page_markdown(
    study: StudyPage,
    models: Sequence[str],
    methods: Sequence[str],
    seeds: Sequence[int],
    appendix: Mapping[str, Path],
) -> str:
    """The front page of a study as Markdown.

    Args:
        study: The study.
        models: Its models.
        methods: Its methods, by their names in the configuration.
        seeds: Its seeds.
        appendix: Further files, by what each shows.
    """
    sections = study_sections(study, level=2)
    contents = [f"- [{title}](#{heading_anchor(title)})" for title in (*sections, APPENDIX)]
    runs = (
        f"A study of the reproduction of {PAPER}: {', '.join(method(m).label for m in methods)} on"
        f" {', '.join(models)}, seeds {', '.join(map(str, seeds))}."
    )
    links = [f"- [{words}]({study.link(path)})" for words, path in appendix.items()]
    return "\n\n".join(
        [
            f"# Study {study.name}",
            f"**{study.about}**",
            *([] if published_architectures().keys() & set(models) else [NOT_RUN.strip()]),
            runs,
            "\n".join(contents),
            *(text.strip() for text in sections.values()),
            f"## {APPENDIX}",
            "\n".join(links) + "\n",
        ]
    )


def heading_anchor(title: str) -> str:
    """The anchor of a heading on a page, by GitHub's rule.

    >>> heading_anchor("Appendix: how this was made")
    'appendix-how-this-was-made'
    """
    return re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-")
