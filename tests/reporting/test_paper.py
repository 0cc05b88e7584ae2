"""A shipped study as a paper: its parts are those of the study, and TeX sets it cleanly."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

from geosd.cli import paper as program
from geosd.cli.paper import main, write_paper
from geosd.reporting.claims_forest import _drawn_rows, forest_pages, plot_forest
from geosd.reporting.paper import latex_words, overfull_boxes, paper_latex, shown_outputs
from geosd.reporting.shipping import read_shipped

ROOT = Path(__file__).parents[2]
FIGURES = ROOT / "figures"


@pytest.mark.slow
def test_a_paper_is_of_some_six_pages_and_no_box_is_overfull(tmp_path, capsys):
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex: apt-get install texlive-latex-recommended")
    assert main("miniature", FIGURES, tmp_path) == 0
    log = (tmp_path / "report.log").read_text()
    assert overfull_boxes(log) == [] and "undefined" not in log
    (pages,) = re.findall(r"Output written on .*\((\d+) pages", log.replace("\n", ""))
    assert 4 <= int(pages) <= 9
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    text = (tmp_path / "report.tex").read_text()
    shown = re.findall(r"\\includegraphics\[.*?\]\{(.*?)\}", text) + re.findall(
        r"\\input\{(.*?)\}", text
    )
    assert "claims_1.pdf" in shown and "table_main.tex" in shown
    assert all((tmp_path / name).is_file() for name in shown)
    table = FIGURES / "miniature/table_main.tex"
    assert (tmp_path / "table_main.tex").read_bytes() == table.read_bytes()
    assert "GeoSD raises average OOD accuracy above the base model" in text
    (tmp_path / "report.tex").write_text(text.replace("\\section{Results}", "\\nosuch"))
    assert "!" in program.compile_paper(tmp_path / "report.tex", shutil.which("pdflatex"))
    assert not (tmp_path / "report.pdf").exists()


@pytest.mark.slow
def test_without_tex_the_source_stays_with_a_hint(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(program.shutil, "which", lambda name: None)
    assert main("miniature_parts_0_selection", FIGURES, tmp_path) == 0
    assert (tmp_path / "report.tex").is_file() and "Hint: " in capsys.readouterr().out


def test_a_family_has_no_paper(tmp_path):
    shipped = (path.parent for path in sorted(FIGURES.glob("*/shipped.json")))
    family = next(folder for folder in shipped if read_shipped(folder).studies)
    with pytest.raises(ValueError, match=r"(?s)is a family.*Hint: name one of its studies"):
        write_paper(family.name, FIGURES, tmp_path)


def test_a_log_of_tex_names_its_overfull_boxes():
    log = "x\nOverfull \\hbox (1pt too wide)\nUnderfull \\hbox\nOverfull \\vbox (2pt too high)\n"
    assert len(overfull_boxes(log)) == 2


def test_a_character_that_no_font_has_is_named():
    assert latex_words("π₀ ≥ 5 % of `x_y`") == r"$\pi_0$ $\geq$ 5 \% of \texttt{x\_\allowbreak{}y}"
    with pytest.raises(ValueError, match=r"(?s)has ☃.*Hint:"):
        latex_words("a ☃")


@pytest.mark.parametrize(
    "manifest", sorted(FIGURES.glob("*/shipped.json")), ids=lambda path: path.parent.name
)
def test_every_caption_and_subject_of_a_shipped_study_can_be_set(manifest):
    shipped = read_shipped(manifest.parent)
    if shipped.studies:
        pytest.skip("a family")
    shown = shown_outputs(shipped.outputs)
    text = paper_latex(shipped, shown, None, [], "")
    assert text.count("\\caption") >= sum(name.startswith("figure") for name in shown)
    assert not [letter for letter in text if ord(letter) > 0xFF]


def test_the_forest_plots_of_a_paper_have_every_claim_once_and_fit_a_page():
    ledger = pd.read_csv(FIGURES / "miniature/claims.csv", keep_default_na=False)
    whole = set(_drawn_rows(ledger)["claim"])
    pages = forest_pages(ledger, 7.0)
    assert len(pages) > 1
    of_pages = [set(_drawn_rows(page)["claim"]) for page in pages]
    assert sum(map(len, of_pages)) == len(whole) and set().union(*of_pages) == whole
    for page in pages:
        assert plot_forest(page).get_size_inches()[1] <= 7.0 + 1e-9
    assert len(forest_pages(ledger, 100.0)) == 1
    assert forest_pages(ledger[ledger["word"] == "not exercised"], 7.0) == []
