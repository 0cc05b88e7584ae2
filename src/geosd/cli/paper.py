"""A shipped study as a paper: report.tex with its tables and figures, and report.pdf where TeX is.

It needs no run and no configuration: all of it is in the folder that the repository ships.
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pandas as pd

from geosd.files import copy_file, write_text
from geosd.reporting import shipping
from geosd.reporting.claims_forest import forest_pages, plot_forest
from geosd.reporting.figures import save
from geosd.reporting.paper import FIGURE, is_long, overfull_boxes, paper_latex, shown_outputs
from geosd.reporting.specs import output_specs, render_output_spec
from geosd.scores.tidy import COLUMNS, read_tidy

REPORT = "report"
PDFLATEX, TECTONIC = "pdflatex", "tectonic"
FOREST_IN = 7.0
"""The largest height of a forest plot, so that a caption has room below it on a page."""
PASSES = 3
"""Passes of pdflatex, after which the widths of long tables no longer change."""


def main(study: str, figures: Path = Path("figures"), out: Path | None = None) -> int:
    """Write a shipped study as a paper of some six pages, in LaTeX, and compile it.

    Args:
        figures: Where the outputs of studies lie.
        out: The folder; build/paper/STUDY without it.

    Returns:
        0, also where no TeX is installed; 1 if TeX fails.

    Raises:
        ValueError: The study is not shipped, or is a family.
    """
    folder = Path("build/paper", study) if out is None else out
    source = write_paper(study, figures, folder)
    program = shutil.which(PDFLATEX) or shutil.which(TECTONIC)
    if program is None:
        print(
            f"{source}\nThere is neither pdflatex nor tectonic, so it is not compiled.\n"
            "Hint: on Debian or Ubuntu: apt-get install texlive-latex-base"
            " texlive-latex-recommended texlive-fonts-recommended"
        )
        return 0
    log = compile_paper(source, program)
    compiled = source.with_suffix(".pdf")
    if not compiled.is_file():
        errors = [line for line in log.splitlines() if line.startswith("!")]
        print(f"{source} is not compiled by {program}.", *errors[:5], sep="\n")
        print(f"Hint: {source.with_suffix('.log')} says more.")
        return 1
    boxes = overfull_boxes(log)
    print(f"{compiled}: {len(boxes)} overfull boxes", *boxes, sep="\n  ")
    return 0


def write_paper(study: str, figures: Path, out: Path) -> Path:
    """Write report.tex and the files that report.tex shows into a folder.

    Returns:
        The path of report.tex.

    Raises:
        ValueError: The study is not shipped, or is a family.
    """
    folder = figures / study
    shipped = shipping.read_shipped(folder)
    if shipped.studies:
        raise ValueError(
            f"{study} is a family, and a paper is of one study.\nHint: name one of its studies:"
            f" {', '.join(shipped.studies)}."
        )
    out.mkdir(parents=True, exist_ok=True)
    sources = shipping.shipped_source_tables(folder)
    of_tables = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.tex")}
    long = [name for name, latex in of_tables.items() if is_long(latex)]
    shown = shown_outputs(shipped.outputs, long)
    for name in shown:
        if not name.startswith(FIGURE):
            copy_file(folder / f"{name}.tex", out / f"{name}.tex")
            continue
        tables = {
            tidy: read_tidy(tidy, sources[tidy])
            if tidy in sources
            else pd.DataFrame(columns=[*COLUMNS[tidy]])
            for tidy in output_specs()[name].reads
        }
        render_output_spec(name, tables, shipped.outputs[name], out)
    ledger = None
    forests: list[str] = []
    if shipping.CLAIMS in shipped.outputs:
        ledger = pd.read_csv(folder / "claims.csv", keep_default_na=False)
        for number, page in enumerate(forest_pages(ledger, FOREST_IN), start=1):
            forests.append(f"{shipping.CLAIMS}_{number}")
            save(plot_forest(page), out, forests[-1])
    made = shipped.made.in_one_line() if shipped.made else ""
    path = out / f"{REPORT}.tex"
    write_text(path, paper_latex(shipped, shown, ledger, forests, made))
    return path


def compile_paper(source: Path, program: str) -> str:
    """Compile a paper next to its source, which keeps no old PDF if that fails; TeX's log."""
    source.with_suffix(".pdf").unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as made:
        if Path(program).name == PDFLATEX:
            options = ["-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape"]
            command = [program, *options, f"-output-directory={made}", source.name]
            passes = PASSES
        else:
            command = [program, "--keep-logs", "--outdir", made, source.name]
            passes = 1
        for _ in range(passes):
            done = subprocess.run(command, cwd=source.parent, capture_output=True, errors="replace")
            if done.returncode:
                break
        log = Path(made, f"{REPORT}.log")
        text = log.read_text(errors="replace") if log.is_file() else done.stdout
        write_text(source.with_suffix(".log"), text)
        if not done.returncode:
            copy_file(Path(made, f"{REPORT}.pdf"), source.with_suffix(".pdf"))
    return text
