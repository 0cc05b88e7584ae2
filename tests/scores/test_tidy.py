"""Tidy files are read with their types; a damaged file is named with the rule that writes it."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from geosd.files import DamagedFileError
from geosd.scores.score_table import score_table_replicates
from geosd.scores.tidy import COLUMNS, RUN_COLUMNS, read_tidy, select_tidy_rows


def test_a_table_without_a_column_is_named_with_the_rule_that_makes_it(tmp_path):
    path = tmp_path / "states.csv"
    path.write_text(",".join(list(COLUMNS["states"])[:-1]) + "\n")
    hint = f"(?s)states.csv: missing column gradient_.*Hint: `rm {path}`, then `make run`"
    with pytest.raises(DamagedFileError, match=hint):
        read_tidy("states", [path])


def test_a_cell_that_is_no_number_is_named_with_its_table(tmp_path):
    path = tmp_path / "drift.csv"
    path.write_text("model,variant,seed,draw,quantity,value\nm,geosd,zero,0,drift/pi_0,0.5\n")
    with pytest.raises(DamagedFileError, match="drift.csv:2: seed is 'zero'; expected a whole num"):
        read_tidy("drift", path)


def test_the_reference_says_of_each_tidy_file_and_column_what_it_holds():
    page = (Path(__file__).parents[2] / "docs/reference.md").read_text(encoding="utf-8")
    section = page.partition("## Tidy files\n")[2].partition("\n## ")[0]
    about, *parts = re.split(r"^`(\w+)\.csv`: ", section, flags=re.M)
    files = dict(zip(parts[::2], parts[1::2], strict=True))
    assert set(files) == set(COLUMNS) and all(f"`{name}`" in about for name in RUN_COLUMNS)
    for name in COLUMNS.keys() - {"claims"}:
        described = re.findall(r"^\| (`.*?`) \|", files[name], flags=re.M)
        named = [column for cell in described for column in re.findall(r"`(\w+)`", cell)]
        assert named == [column for column in COLUMNS[name] if column not in RUN_COLUMNS]


def test_names_stay_text(tmp_path):
    path = tmp_path / "drift.csv"
    path.write_text("model,variant,seed,draw,quantity,value\n007,nan,3,1,drift/pi_0,0.5\n")
    row = read_tidy("drift", path).iloc[0]
    assert (row["model"], row["variant"], row["seed"], row["draw"]) == ("007", "nan", 3, 1)


HEAD = "model,variant,seed,draw,benchmark,split,metric,k,value\n"
ROWS = [
    f"m,{variant},{seed},0,id,ID,{cells}\n"
    for variant in ("a", "b")
    for seed in (0, 1)
    for cells in ("avg@k,4,62.5", "tokens,4,312.0")
]
WHOLE = HEAD + "".join(ROWS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD, "has no row"),
        ("", "cannot be read"),
        (WHOLE[:-1], ":9: the line has no end"),
        (WHOLE.replace("62.5", "250", 1), ":2: value is 250.0; expected a number from 0 to 100"),
        (WHOLE.replace("62.5", "-1", 1), ":2: value is -1.0; expected a number from 0 to 100"),
        (WHOLE.replace("62.5", "inf", 1), ":2: value is inf"),
        (WHOLE.replace("62.5", "", 1), ":2: value is nothing"),
        (WHOLE.replace("62.5", "6x", 1), ":2: value is '6x'; expected a number"),
        (WHOLE.replace("62.5", "62,5", 1), ":2: the number of cells"),
        (WHOLE.replace("a,1,0,id", "a,1.5,0,id", 1), ":4: seed is '1.5'; expected a whole number"),
        (WHOLE.replace("ID", "OD", 1), ":2: split is 'OD'"),
        (WHOLE + ROWS[0], ":10: .*each row once"),
        (HEAD + "".join(ROWS[:-1]), "b on m, seed 1, has 1 rows; expected 2"),
        (HEAD + "".join(ROWS[:-2]), "b on m has no row of seed 1"),
    ],
)
def test_a_damaged_table_is_named_with_line_and_column(tmp_path, text, expected):
    path = tmp_path / "scores.csv"
    path.write_text(WHOLE)
    assert len(read_tidy("scores", path)) == len(ROWS)
    path.write_text(text)
    with pytest.raises(DamagedFileError, match=f"(?s)^{path}.*{expected}.*\nHint: `rm {path}`"):
        read_tidy("scores", path)


def test_selected_rows_have_all_the_values_given():
    table = pd.DataFrame({"model": ["a", "a", "b"], "seed": [0, 1, 1]}, index=[5, 6, 7])
    assert list(select_tidy_rows(table, model="a", seed=1).index) == [6]
    assert select_tidy_rows(table, model="c").empty


def test_seeds_are_of_one_draw_unless_a_column_says_so():
    table = pd.DataFrame({"seed": [2, 0, 1, 0]}, index=[4, 5, 6, 7])
    assert score_table_replicates(table).to_dict() == {0: 0, 1: 0, 2: 0}
    assert score_table_replicates(table.assign(draw=[2, 0, 1, 0])).to_dict() == {0: 0, 1: 1, 2: 2}
    assert score_table_replicates(table.iloc[:0]).empty
