"""Tidy files are read as what they are, and a damaged one is named with the rule that writes it."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from geosd.scores.tidy_columns import COLUMNS
from geosd.scores.tidy_files import draws_by_seed, read_tidy, select_rows


def test_a_table_without_a_column_is_named_with_the_rule_that_makes_it(tmp_path):
    path = tmp_path / "states.csv"
    path.write_text(",".join(list(COLUMNS["states"])[:-1]) + "\n")
    with pytest.raises(ValueError, match="(?s)states.csv: missing column gradient_.*`states`"):
        read_tidy("states", [path])


def test_a_cell_that_is_no_number_is_named_with_its_table(tmp_path):
    path = tmp_path / "drift.csv"
    path.write_text("model,variant,seed,draw,quantity,value\nm,geosd,zero,0,drift/pi_0,0.5\n")
    with pytest.raises(ValueError, match="(?s)drift.csv: the table of drift cannot be read.*Hint:"):
        read_tidy("drift", path)


def test_names_stay_text_and_an_empty_number_is_nan(tmp_path):
    path = tmp_path / "drift.csv"
    path.write_text("model,variant,seed,draw,quantity,value\n007,nan,3,1,drift/pi_0,\n")
    row = read_tidy("drift", path).iloc[0]
    assert (row["model"], row["variant"], row["seed"], row["draw"]) == ("007", "nan", 3, 1)
    assert math.isnan(row["value"])


def test_rows_have_all_the_values_asked_for():
    table = pd.DataFrame({"model": ["a", "a", "b"], "seed": [0, 1, 1]}, index=[5, 6, 7])
    assert list(select_rows(table, model="a", seed=1).index) == [6]
    assert select_rows(table, model="c").empty


def test_seeds_are_of_one_draw_unless_a_column_says_so():
    table = pd.DataFrame({"seed": [2, 0, 1, 0]}, index=[4, 5, 6, 7])
    assert draws_by_seed(table).to_dict() == {0: 0, 1: 0, 2: 0}
    assert draws_by_seed(table.assign(draw=[2, 0, 1, 0])).to_dict() == {0: 0, 1: 1, 2: 2}
    assert draws_by_seed(table.iloc[:0]).empty
