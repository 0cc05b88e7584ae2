"""The tables of costs: every printed digit that comes out, and every one that does not."""

from __future__ import annotations

import pytest

from geosd.claims.published import published
from geosd.models.architectures import published_architectures as shapes
from geosd.reporting import table_architectures, table_flops, table_kfac_memory, table_memory
from geosd.reporting.latex_tables import to_latex
from geosd.reporting.paper_comparison import ComparedQuantity, comparison_cells
from geosd.reporting.tables import table_to_csv, table_to_markdown

CAP = (8, 4096)  # problems of an update, tokens of a response
TABLES = {
    "architectures": table_architectures.build([]),
    "flops": table_flops.build(*CAP, 16, 1 / 8),
    "memory": table_memory.build(*CAP, 1024),
    "kfac_memory": table_kfac_memory.build(),
}


def column(table, key):
    at = [c.key for c in table.columns].index(key)
    return {row.label: row.cells[at] for row in table.rows}


def values(table, key):
    return {label: cell.value for label, cell in column(table, key).items()}


def test_one_entry_of_the_architectures_differs_from_the_paper():
    table = TABLES["architectures"]
    assert {k: v for k, v in values(table, "differs").items() if v != "none"} == {
        "Olmo-3-7B-Think": "V"
    }
    assert column(table, "vocabulary.paper")["Olmo-3-7B-Think"].text == "100352"
    assert column(table, "vocabulary")["Olmo-3-7B-Think"].text == "100278"
    millions = column(table, "parameters_millions")
    assert [cell.text for cell in millions.values()] == [
        f"{shape.parameters / 1e6:.3f}" for shape in shapes().values()
    ]


def test_a_studys_own_model_says_what_it_stands_for_and_has_no_companion():
    table = table_architectures.build(["mini-olmo3", "a-released-one"])
    assert values(table, "stands_for")["mini-olmo3"] == "Olmo-3-7B-Think"
    assert column(table, "hidden.paper")["mini-olmo3"].number is None
    assert len(table.rows) == 8 and table.rows[-1].kind == "This study's models"


def test_the_papers_totals_follow_from_its_components():
    table = TABLES["flops"]
    assert values(table, "differs")["OPSD (standard)"] == "none"
    assert values(table, "differs")["GeoSD, K-FAC: taken from the paper"] == "none"


def test_every_reading_of_kfacs_units_is_shown_beside_the_papers():
    table = TABLES["flops"]
    shown = {k: c.text for k, c in column(table, "kfac").items() if c.number is not None}
    assert list(shown.values()) == ["0.40", "0.04", "0.09", "0.33", "0.38", "0.67", "0.09"]
    assert {column(table, "kfac.paper")[label].text for label in shown} == {"0.4"}
    wrong = {k: v for k, v in values(table, "differs").items() if "K-FAC" in v}
    assert "GeoSD, K-FAC: every token, inverses and products" not in wrong
    assert len(wrong) == 5
    assert values(table, "ratio")["GeoSD, K-FAC: covariances, in blocks"] == pytest.approx(
        (6 + 3 + 2 + 0.0416) / 9, abs=1e-4
    )


def test_wall_clock_is_the_papers_alone():
    clock = values(TABLES["flops"], "wall_clock.paper")
    assert {v for label, v in clock.items() if label.startswith("GeoSD")} == {1.10}
    assert not any(c.key == "wall_clock" for c in TABLES["flops"].columns)


def test_every_digit_of_the_memory_table_comes_out():
    table = TABLES["memory"]
    assert set(values(table, "differs").values()) <= {"none", "–"}
    printed = {key: column(table, f"{key}.paper")["GeoSD"].text for key in ("total", "ratio")}
    assert printed == {"total": "158", "ratio": "1.21"}
    assert values(table, "ratio.paper")["GeoSD, training workers"] == pytest.approx(1.08)
    assert values(table, "kfac")["GeoSD, as built here"] < 10.9


def test_the_ladders_deviations_are_named_and_vanish_with_rounded_terms():
    table = TABLES["kfac_memory"]
    assert list(values(table, "differs").values()) == [
        "Total",
        "none",
        "none",
        "+ bf16 ckpt",
        "+ bf16 ckpt, Total",
    ]
    for key in ("snapshot", "total"):
        rounded = [cell.text for cell in column(table, f"{key}.rounded").values()]
        assert rounded == [cell.text for cell in column(table, f"{key}.paper").values()]
    assert column(table, "total")["Qwen3-32B"].text == "83.81"


def test_every_printed_cell_of_the_ladder_stands_in_the_table():
    table = TABLES["kfac_memory"]
    for row, printed in zip(table.rows, published()["kfac_memory"]["rows"].values(), strict=True):
        cells = dict(zip((c.key for c in table.columns), row.cells, strict=True))
        assert (cells["g"].value, cells["dtype"].value) == (printed["blocks"], printed["storage"])
        for key in ("full", "kfac", "snapshot", "total", "increase"):
            assert cells[f"{key}.paper"].value == printed[key]


def test_digits_are_compared_as_printed():
    q = (ComparedQuantity("x", "X", ".1f"), ComparedQuantity("y", "Y", ".2f"))

    def labels(x, y):
        """Of (computed, published) of both quantities."""
        computed, published = ({"x": a, "y": b} for a, b in zip(x, y, strict=True))
        return comparison_cells(q, computed, published)[-1].value

    assert labels((1.04, 1.0), (2.0, None)) == "none"
    assert labels((1.06, 1.0), (2.006, 2.0)) == "X, Y"
    assert labels((9.4, 9), (None, 2.0)) == "none"  # 9 was printed without decimals
    assert labels((9.6, 9), (1.0, None)) == "X"
    assert labels((1.0, None), (2.0, None)) == "–"


@pytest.mark.parametrize("name", TABLES)
def test_each_form_holds_every_row(name):
    for form in (table_to_csv, table_to_markdown, to_latex):
        text = form(TABLES[name])
        assert all(row.label.split(",")[0] in text for row in TABLES[name].rows)
