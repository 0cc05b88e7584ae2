"""The words at the end of `make run`."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest
import yaml

from geosd.cli import run
from geosd.reporting.saved_tables import save
from geosd.reporting.tables import Table, TableCell, TableColumn, TableRow
from geosd.scores.tidy import COLUMNS

TRANSCRIPT = """\
Against the base model GeoSD gains in distribution, +10.9 points [+9.7, +12.1],
and loses out of distribution, -5.7 points [-6.7, -4.6] (36 runs on 18 base
models; the paper: +21.1 and +7.3).
opposite  -5.7 [-6.7, -4.6]  GeoSD raises average OOD accuracy above the base
                             model
opposite  -5.7 [-6.7, -4.6]  At the learning rate of both GeoSD has a higher OOD
                             average than FwdKL
Of the other claims 2 agree, 2 are too small to tell and 1 is not exercised. Of
the costs 2 agree and 1 is opposite.
The paper's claims: quick/claims.md
Study quick: Minutes on a laptop. Proves the installation; too small to judge
the paper's claims.
"""
FOUND = {
    "costs": ["agrees", "agrees", "opposite"],
    "mini-qwen3": ["agrees", "too small to tell", "too small to tell", "not exercised"],
}
"""The words of four other claims and of three on costs; two primary ones stand beside them."""


@pytest.fixture
def figures(tmp_path):
    blank = dict.fromkeys(COLUMNS["claims"], 0) | {"unit": "points", "designed_for": "main"}
    blank |= {"confidence": 0.95}
    rows = [
        blank | {"claim": f"{model}-{n}", "model": model, "word": word, "part": part}
        for model, found in FOUND.items()
        for n, word in enumerate(found)
        for part in ("computed" if model == "costs" else "other",)
    ]
    numbers = {"effect": -5.66, "low": -6.72, "high": -4.61, "paper_effect": 7.3}
    numbers |= {"n_a": 36, "n_b": 36, "units": 18, "claimed_to": math.inf}
    apart = blank | numbers | {"model": "all models", "word": "opposite"}
    gain = {"statement": "GeoSD raises average OOD accuracy above the base model"}
    more = {"statement": "At the learning rate of both GeoSD has a higher OOD average than FwdKL"}
    primary = [apart | gain | {"claim": "geosd-ood-gain"}, apart | more | {"claim": "b"}]
    rows += [row | {"part": "primary"} for row in primary]
    inside = {"claim": "geosd-id-gain", "effect": 10.93, "low": 9.74, "high": 12.12}
    rows.append(apart | inside | {"word": "agrees", "part": "other", "paper_effect": 21.1})
    (tmp_path / "quick").mkdir()
    pd.DataFrame(rows).to_csv(tmp_path / "quick/claims.csv", index=False)
    columns = (
        TableColumn("m.id", "ID", "mini-qwen3"),
        TableColumn("m.ood", "OOD avg.", "mini-qwen3"),
    )
    row = TableRow("GeoSD", "", (TableCell(61.25, 0.4), TableCell(47.1, 1.1)))
    save(
        Table("table_main", "Accuracy", "In percent.", "Method", columns, (row,)),
        tmp_path / "quick",
    )
    return tmp_path


def params(root, folder, **changes):
    """A params.yaml whose study quick has other values."""
    values = yaml.safe_load((root / "params.yaml").read_text())
    values["studies"]["quick"] |= changes
    (folder / "params.yaml").write_text(yaml.safe_dump(values))
    (folder / "base_models").symlink_to(root / "base_models")
    return folder / "params.yaml"


@pytest.fixture(autouse=True)
def narrow(monkeypatch):
    """The narrowest terminal that is common."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("judged", [True, False])
def test_table_words_and_what_the_study_is_for_are_shown(root, figures, tmp_path, capsys, judged):
    if not judged:
        ledger = pd.read_csv(figures / "quick/claims.csv")
        ledger.assign(word="not judged").to_csv(figures / "quick/claims.csv", index=False)
    run.print_run_summary("quick", params(root, tmp_path, verdicts=judged), figures)
    shown = capsys.readouterr().out
    about = yaml.safe_load((root / "params.yaml").read_text())["studies"]["quick"]["about"]
    assert "\x1b" not in shown
    assert "GeoSD" in shown and "61.2 ±0.4" in shown and "47.1 ±1.1" in shown
    assert "|" not in shown
    assert " ".join(shown.split()).endswith(f"Study quick: {about}")
    words = "too small to tell" if judged else "not meant to judge"
    assert ("opposite" in shown) == judged
    assert shown.index("GeoSD") < shown.index(words) < shown.index("Study quick")


def test_what_is_shown_is_whole_in_80_columns_and_24_lines(
    root, figures, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(figures)
    run.print_run_summary("quick", params(root, tmp_path, verdicts=True), Path())
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, lines)) <= 80 and len(lines) <= 24
    assert lines[-len(TRANSCRIPT.splitlines()) :] == TRANSCRIPT.splitlines()


def test_a_study_without_tables_and_claims_says_what_it_is_for(root, tmp_path, capsys):
    run.print_run_summary("quick", params(root, tmp_path, outputs=["figure_frontier"]), tmp_path)
    assert capsys.readouterr().out.strip().startswith("Study quick: ")


def test_a_study_that_was_not_run_says_how_to_run_it(root, tmp_path):
    with pytest.raises(FileNotFoundError, match="has not been run.\nHint: `make run STUDY=quick`"):
        run.print_run_summary("quick", root / "params.yaml", tmp_path)
