"""The words at the end of `make run`."""

from __future__ import annotations

import pandas as pd
import pytest
import yaml

from geosd.cli import run
from geosd.reporting.tables import Cell, Column, Row, Table, save
from geosd.scores.tidy import COLUMNS

FOUND = {
    "costs": ["agrees", "agrees", "opposite"],
    "mini-qwen3": ["agrees", "too small to tell", "too small to tell", "not exercised"],
}


@pytest.fixture
def figures(tmp_path):
    rows = [
        dict.fromkeys(COLUMNS["claims"], 0) | {"model": model, "word": word, "part": part}
        for model, found in FOUND.items()
        for word in found
        for part in ("computed" if model == "costs" else "other",)
    ]
    apart = dict.fromkeys(COLUMNS["claims"], 0) | {"model": "mini-qwen3", "word": "opposite"}
    rows += [apart | {"part": part} for part in ("primary", "by construction")]
    (tmp_path / "quick").mkdir()
    pd.DataFrame(rows).to_csv(tmp_path / "quick/claims.csv", index=False)
    columns = (Column("m.id", "ID", "mini-qwen3"), Column("m.ood", "OOD avg.", "mini-qwen3"))
    row = Row("GeoSD", "", (Cell(61.25, 0.4), Cell(47.1, 1.1)))
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
    for name in ("selected", "base_models"):
        (folder / name).symlink_to(root / name)
    return folder / "params.yaml"


@pytest.mark.parametrize("judged", [True, False])
def test_table_words_and_what_the_study_is_for_are_shown(root, figures, tmp_path, capsys, judged):
    run.summary("quick", params(root, tmp_path, verdicts=judged), figures)
    shown = capsys.readouterr().out
    about = yaml.safe_load((root / "params.yaml").read_text())["studies"]["quick"]["about"]
    assert "\x1b" not in shown
    assert "GeoSD" in shown and "61.2 ±0.4" in shown and "47.1 ±1.1" in shown
    assert "|" not in shown
    assert " ".join(shown.split()).endswith(f"Study quick: {about}")
    words = "too small to tell" if judged else "not meant to judge"
    assert ("agrees" in shown) == judged
    assert shown.index("GeoSD") < shown.index(words) < shown.index("Study quick")


def test_every_word_is_counted_by_model_and_arithmetic_apart(figures):
    counts = run.word_counts(pd.read_csv(figures / "quick/claims.csv"))
    assert list(counts) == ["agrees", "opposite", "too small to tell", "not exercised"]
    assert counts.T.to_dict("list") == {"mini-qwen3": [1, 0, 2, 1], "costs": [2, 1, 0, 0]}


def test_a_study_without_tables_and_claims_says_what_it_is_for(root, tmp_path, capsys):
    run.summary("quick", params(root, tmp_path, outputs=["figure_frontier"]), tmp_path)
    assert capsys.readouterr().out.strip().startswith("Study quick: ")


def test_a_study_that_was_not_run_says_how_to_run_it(root, tmp_path):
    with pytest.raises(FileNotFoundError, match="has not been run.\nHint: `make run STUDY=quick`"):
        run.summary("quick", root / "params.yaml", tmp_path)
