"""A study as a short paper in LaTeX: its claims, figures and tables, for pdflatex or tectonic."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from geosd.claims.finding import ALL_MODELS
from geosd.reporting.claims_numbers import numbers_of_interval, numbers_of_paper
from geosd.reporting.claims_sentences import claims_counts_sentence
from geosd.reporting.latex_tables import escape_latex
from geosd.reporting.shipping import ShippedManifest
from geosd.reporting.specs import output_spec_caption, output_spec_title, output_specs

TABLE, FIGURE = "table", "figure"
MOST = 3
"""Tables, and figures, of a paper: some six pages hold them."""
OVERFULL = re.compile(r"^Overfull \\[hv]box .*$", re.MULTILINE)
SYMBOLS = {
    "₀": r"\textsubscript{0}",
    "²": r"\textsuperscript{2}",
    "−": r"$-$",
    "—": "---",
    "·": r"$\cdot$",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "≈": r"$\approx$",
    "∈": r"$\in$",
    "√": r"$\surd$",
    "∑": r"$\sum$",
    "Σ": r"$\Sigma$",
    "α": r"$\alpha$",
    "π": r"$\pi$",
    "ρ": r"$\rho$",
    "τ": r"$\tau$",
    "θ": r"$\theta$",
    "∞": r"$\infty$",
    "’": "'",
}
"""What captions and statements have, and a font of eight bits lacks."""
PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage[T1]{fontenc}
\usepackage[utf8]{inputenc}
\usepackage{mathptmx}
\usepackage[textwidth=5.5in,textheight=9in]{geometry}
\usepackage{amsmath,array,booktabs,float,graphicx,longtable}
\usepackage[hidelinks]{hyperref}
\floatplacement{table}{H}
\floatplacement{figure}{H}
\emergencystretch=3em
"""


def latex_words(text: str) -> str:
    r"""Markdown's words in LaTeX: `code` and **bold**, special characters escaped, symbols as math.

    >>> latex_words("50 % of `a_b` – **all**")
    '50 \\% of \\texttt{a\\_\\allowbreak{}b} -- \\textbf{all}'

    Raises:
        ValueError: A character that the fonts of `PREAMBLE` lack.
    """
    linked = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text)
    escaped = escape_latex(linked)
    escaped = re.sub(r"`([^`]+)`", r"\\texttt{\1}", escaped).replace(r"\_", r"\_\allowbreak{}")
    escaped = re.sub(r"\*\*([^*]+)\*\*", r"\\textbf{\1}", escaped)
    for symbol, command in SYMBOLS.items():
        escaped = escaped.replace(symbol, command)
    unknown = sorted({letter for letter in escaped if ord(letter) > 0xFF})
    if unknown:
        raise ValueError(
            f"{text[:60]!r} has {', '.join(unknown)}, which a paper cannot set yet.\n"
            "Hint: add a command to SYMBOLS in geosd/reporting/paper.py."
        )
    return escaped


def shown_outputs(outputs: Iterable[str], long: Iterable[str] = ()) -> list[str]:
    """The first figures, then the first tables, that show what runs gave, in the study's order.

    Settings and arithmetic, which read no tidy file, and what is `long`, are left to the study's
    page.
    """
    known = output_specs()
    left_out = set(long)
    of_runs = [n for n in outputs if n in known and known[n].reads and n not in left_out]
    tables = [name for name in of_runs if name.startswith(TABLE)]
    figures = [name for name in of_runs if name.startswith(FIGURE)]
    return [*figures[:MOST], *tables[:MOST]]


def is_long(latex: str) -> bool:
    """Whether a table in LaTeX runs over pages."""
    return r"\begin{longtable}" in latex


def paper_latex(
    shipped: ShippedManifest,
    shown: Sequence[str],
    ledger: pd.DataFrame | None,
    forests: Sequence[str],
    made: str,
) -> str:
    """The paper of a study in LaTeX.

    The folder of the paper has `<figure>.pdf`, `<table>.tex` and `<forest>.pdf`.

    Args:
        shown: Its `shown_outputs`.
        ledger: Its claims.csv, if it has one.
        forests: Names of the forest plots of its claims, a page each.
        made: When, by which code and on which machine, in words.
    """
    title = rf"\title{{Study {escape_latex(shipped.study)} of Geometric Self-Distillation}}"
    parts = [
        PREAMBLE + title,
        r"\author{Written by \texttt{geosd paper} from the\\ tables, figures and verdicts that the"
        "\nrepository ships}\n\\date{}",
        r"\begin{document}" + "\n" + r"\maketitle",
        _abstract(shipped, ledger),
        r"\section{What is studied}",
        _subject(shipped),
    ]
    parts += [r"\section{How it is made again}", _remake(shipped.study, made)]
    if ledger is not None:
        parts += [r"\section{The claims}", *_claims(ledger, forests)]
    parts += [r"\section{Results}", _contents(shown)]
    rest = [name for name in shipped.outputs if name not in {*shown, "claims"}]
    if rest:
        parts += [f"The study's page also has {latex_words(_listed(rest))}."]
    parts += [_output(name, shipped.outputs[name]) for name in shown]
    parts += [r"\end{document}"]
    return "\n\n".join(parts) + "\n"


def overfull_boxes(log: str) -> list[str]:
    r"""The lines of a log of TeX that name a box which is too wide or too high.

    >>> overfull_boxes("a\nOverfull \\hbox (3.1pt too wide) in paragraph at lines 1--2\nb")
    ['Overfull \\hbox (3.1pt too wide) in paragraph at lines 1--2']
    """
    return OVERFULL.findall(log)


def _abstract(shipped: ShippedManifest, ledger: pd.DataFrame | None) -> str:
    words = [latex_words(shipped.about)]
    if ledger is not None:
        words.append(latex_words(claims_counts_sentence(ledger)))
    return "\\begin{abstract}\n" + "\n".join(words) + "\n\\end{abstract}"


def _subject(shipped: ShippedManifest) -> str:
    """Models and methods, as the settings of the study's outputs name them."""
    models = dict.fromkeys(m for each in shipped.outputs.values() for m in each.get("models", ()))
    methods = dict.fromkeys(m for each in shipped.outputs.values() for m in each.get("methods", ()))
    lines = [
        "The study follows \\emph{Geometric Self-Distillation for Reasoning Generalization}"
        r"\footnote{Josip Juki\'{c} and Ivan Titov, 2026.}."
    ]
    if models:
        lines.append(f"Its models are {latex_words(_listed(models))}.")
    if methods:
        lines.append(f"Its methods are {latex_words(_listed(methods))}.")
    return "\n".join(lines)


def _claims(ledger: pd.DataFrame, forests: Sequence[str]) -> list[str]:
    """The primary claims over all models as a table, and the forest plots of all."""
    primary = ledger[ledger["part"] == "primary"]
    pooled = primary[primary["model"] == ALL_MODELS]
    rows = primary if pooled.empty else pooled
    parts = []
    if not rows.empty:
        said = r"Table~\ref{tab:claims} has the claims that were named in advance"
        if forests:
            said += f", {_forest_references(forests)} every claim that the study exercises"
        parts += [f"{said}.", _claims_table(rows.to_dict("records"))]
    caption = (
        "Every claim that the study exercises, with its effect and interval, a diamond at the"
        " paper's number, and in grey what the paper claims."
    )
    for number, name in enumerate(forests, start=1):
        part = f" Part {number} of {len(forests)}." if len(forests) > 1 else ""
        parts.append(_figure(name, caption + part))
    return parts


def _forest_references(forests: Sequence[str]) -> str:
    """References to the first forest plot, or to the first and the last."""
    ends = list(dict.fromkeys((forests[0], forests[-1])))
    noun = "Figures" if len(ends) > 1 else "Figure"
    references = (rf"\ref{{fig:{name.replace('_', '-')}}}" for name in ends)
    return f"{noun}~{' to~'.join(references)}"


def _claims_table(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = [
        r"\begin{table}",
        r"\centering",
        r"\caption{The primary claims. Effects in percentage points with their interval, corrected"
        r" as in the paper.}",
        r"\label{tab:claims}",
        r"\small",
        r"\begin{tabular}{>{\raggedright\arraybackslash}p{2.6in}lrr}",
        r"\toprule",
        r"Claim & Verdict & Effect & Paper \\",
        r"\midrule",
    ]
    for row in rows:
        effect, interval = numbers_of_interval(row)
        words = [row["statement"], row["word"], f"{effect} {interval}", numbers_of_paper(row)]
        lines.append(" & ".join(map(latex_words, words)) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def _contents(shown: Iterable[str]) -> str:
    """Which table and figure shows what, in a paragraph."""
    said = []
    for name in shown:
        kind, short = ("Figure", "fig") if name.startswith(FIGURE) else ("Table", "tab")
        reference = rf"{kind}~\ref{{{short}:{name.replace('_', '-')}}}"
        said.append(f"{reference} shows: {latex_words(output_spec_title(name))}.")
    return "\n".join(said)


def _output(name: str, settings: Mapping[str, Any]) -> str:
    """A figure with its caption, or the table of its own file."""
    if not name.startswith(FIGURE):
        return rf"\input{{{name}.tex}}"
    words = output_spec_caption(name, settings.get("models", ()))
    return _figure(name, f"**{output_spec_title(name)}.** {words}")


def _figure(name: str, caption: str) -> str:
    size = r"width=\linewidth,height=.8\textheight,keepaspectratio"
    lines = [
        r"\begin{figure}",
        r"\centering",
        rf"\includegraphics[{size}]{{{name}.pdf}}",
        rf"\caption{{{latex_words(' '.join(caption.split()))}}}",
        rf"\label{{fig:{name.replace('_', '-')}}}",
        r"\end{figure}",
    ]
    return "\n".join(lines)


def _remake(study: str, made: str) -> str:
    commands = [f"make figures STUDY={study}", f"make paper STUDY={study}"]
    lines = [r"\begin{verbatim}", *commands, r"\end{verbatim}"]
    draws = "The first command draws tables and figures again, without training."
    settings = rf"Settings and costs are in \texttt{{figures/{escape_latex(study)}/}}."
    ran = f"The runs: {latex_words(made)}." if made else ""
    return "\n".join([*lines, draws, settings, ran])


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
