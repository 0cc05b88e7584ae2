"""What a study shows, as Markdown: its frontier, verdicts and main table first, then the rest.

One study in `figures/` is a part of docs/results.md where it is shipped, and the study's front page
(`geosd.cli.front_page`) in any case. Links are relative to the page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from geosd.claims.finding import NOT_JUDGED
from geosd.reporting.captions import output_title
from geosd.reporting.claims_page import FORMS, NO_VERDICTS, verdict_counts
from geosd.reporting.specs import OutputSpec, output_kind, output_specs
from geosd.reporting.tables import MISSING, markdown_table
from geosd.scores.tidy import read_tidy

CLAIMS = "claims"
FIRST = ("figure_frontier", CLAIMS, "table_main", "figure_training")
"""What a page of a study begins with; its other outputs follow in the study's order."""
VERDICTS_TITLE = "Verdicts on the paper's claims"
ESTIMATES_TITLE = "Estimates for the paper's claims"
INTERVAL = ("effect", "low", "high")
"""Columns of the claims whose numbers the page shows."""
NOT_RUN = (
    "The paper's own models of 7 and 8 billion parameters have not been run.\n"
    "All numbers that the repository ships are of models of 0.03 to 0.6 million parameters in a"
    " made-up world, and of one model of 135 million parameters at one learning rate.\n"
    "The sign of the gain out of distribution depends on how far the problems in and out of"
    " distribution conflict in that world.\n"
    "The numbers test the implementation and the mechanism; they are no evidence on the paper's"
    " numbers.\n"
)
"""What a reader of any number of a study without the paper's models must know first."""


@dataclass(frozen=True)
class StudyPage:
    """A study on a page.

    Attributes:
        name: Of the study.
        about: One sentence: what the study is, what it can and cannot say.
        outputs: Its tables, figures and `claims`, in the study's order.
        folder: Of the files of its outputs.
        captions: The caption of each table and figure with its source data, as
            `geosd.reporting.captions.caption_markdown` writes it, with links from the page.
        page: The file of the page.
        claims_page: The file with all claims.
        not_kept: Endings of files that are not in the folder of the outputs.
    """

    name: str
    about: str
    outputs: tuple[str, ...]
    folder: Path
    captions: Mapping[str, str]
    page: Path
    claims_page: Path
    not_kept: tuple[str, ...] = ()

    def link(self, path: Path) -> str:
        """A file as a link on the page names it."""
        return Path(os.path.relpath(path, self.page.parent)).as_posix()

    @property
    def ordered(self) -> list[str]:
        """The outputs in the page's order."""
        shown = [name for name in self.outputs if name == CLAIMS or name in output_specs()]
        return sorted(shown, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))


def study_sections(study: StudyPage, level: int) -> dict[str, str]:
    """The outputs of a study as Markdown, in the page's order, by their headings.

    Each has its heading, caption, files, and the claims that it bears on.

    Args:
        study: The study.
        level: Of the headings, 1 to 6.
    """
    claims = None
    if CLAIMS in study.outputs:
        claims = read_tidy(CLAIMS, study.folder / "claims.csv")
    sections = {}
    for name in study.ordered:
        if name == CLAIMS:
            title = VERDICTS_TITLE if _is_judged(claims) else ESTIMATES_TITLE
            shown = _verdicts(study, claims)
        else:
            title, shown = output_title(name), _output(study, name, claims)
        sections[title] = f"{'#' * level} {title}\n\n{shown}"
    return sections


def alt_text(caption: str) -> str:
    """What a figure shows, for who cannot see it: its title and the first sentence of its caption.

    >>> alt_text("**Drift over steps.** Mean over [seeds]. Bands: SD.")
    'Drift over steps. Mean over seeds.'
    """
    title, words = title_and_words(" ".join(caption.split()))
    sentence = words.partition(". ")[0].removesuffix(".")
    return re.sub(r"[\[\]]", "", f"{title}. {sentence}.")


def title_and_words(caption: str) -> tuple[str, str]:
    """The title of a caption, without its full stop, and what follows it."""
    title, _, words = caption.removeprefix("**").partition(".**")
    return title, words.strip()


def claims_on(claims: pd.DataFrame, spec: OutputSpec) -> pd.DataFrame:
    """The tested claims that bear on an output of a study's page: those whose place names it.

    Args:
        claims: A study's tidy claims.
        spec: The output's declaration; one that the paper has not bears no claim.
    """
    if not spec.paper:
        return claims.iloc[:0]
    named = claims["place"].str.contains(rf"\b{re.escape(spec.paper)}\b", regex=True)
    return claims[named & (claims["verdict"] != "not tested")]


def _is_judged(claims: pd.DataFrame) -> bool:
    return NOT_JUDGED not in set(claims["verdict"])


def _verdicts(study: StudyPage, claims: pd.DataFrame) -> str:
    page = study.link(study.claims_page)
    if not _is_judged(claims):
        return f"{NO_VERDICTS}. [Every claim with its effect and interval]({page}).\n"
    counts = verdict_counts(claims)
    lines = [["model", *counts], *([str(n) for n in row] for row in counts.itertuples())]
    link = f"[Every claim with its verdict, effect and interval]({page})"
    return f"{markdown_table(lines, left=1)}\n\n{link}.\n"


def _output(study: StudyPage, name: str, claims: pd.DataFrame | None) -> str:
    caption, files = study.captions[name], study.folder / name
    if output_kind(name).label == "Figure":
        parts = [f"![{alt_text(caption)}]({study.link(files)}.svg)\n"]
    else:
        table = files.with_suffix(".md").read_text(encoding="utf-8")
        table = re.sub(r"\A# .*\n+", "", table)  # the page has the title
        parts = [re.sub(r"^#+ (.*)$", r"**\1**", table, flags=re.MULTILINE)]
    endings = [e for e in output_kind(name).extensions if e not in study.not_kept]
    links = ", ".join(f"[{name}.{ending}]({study.link(files)}.{ending})" for ending in endings)
    parts.append(f"{title_and_words(caption)[1]} Files: {links}.\n")
    if claims is not None and len(rows := claims_on(claims, output_specs()[name])):
        lines = [["claim", "verdict", "model", "effect", "paper"]]
        lines += [list(_line(row)) for row in rows.to_dict("records")]
        if not _is_judged(claims):
            lines = [[claim, *others] for claim, _, *others in lines]
        parts.append(markdown_table(lines, left=len(lines[0]) - 2) + "\n")
    return "\n".join(parts)


def _line(row: Mapping[str, str]) -> Sequence[str]:
    """A claim's line: what it says, its verdict, where, effect with interval, and the paper's."""
    form = FORMS.get(row["unit"], "+.3g")
    effect, low, high = (format(float(row[key]), form) if row[key] else "" for key in INTERVAL)
    words = f"{effect} [{low}, {high}]" if low and high else effect
    return [row["statement"], row["verdict"], row["model"], words or MISSING, row["published"]]
