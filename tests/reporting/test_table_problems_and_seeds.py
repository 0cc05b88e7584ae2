"""Intervals by problem and by seed, computed again from a shares.csv with numpy alone."""

from __future__ import annotations

import csv
import gzip
import json
import re
import runpy
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up_tables import made_up_tables
from shipped_studies import tidy_path

from geosd.config import load, resolve_study, settings
from geosd.config.run_folders import RunFolders
from geosd.problems.records import SampleRecord
from geosd.reporting import table_problems_and_seeds
from geosd.scores.sample_tables import sample_share_rows
from geosd.scores.score_table import ScoredRun
from geosd.scores.tidy import read_tidy, tidy_rows_of_runs

ROOT = Path(__file__).parents[2]
SHIPPED = sorted(path.parent for path in ROOT.glob("figures/*/table_problems_and_seeds.csv"))
CELLS = {
    f"{divergence}-{penalty}-{rule}-{steps}": {
        "divergence": divergence,
        "drift_penalty": penalty,
        "rule": rule,
        "steps": steps,
    }
    for divergence, penalty, rule in (
        ("fwdkl", 0.0, "adamw"),
        ("hellinger", 0.0, "adamw"),
        ("fwdkl", 4.0, "adamw"),
        ("hellinger", 1.0, "kfac"),
    )
    for steps in (6, 30)
}
PAPER, FWDKL, WITH_TERM = "(Hellinger, 8, K-FAC)", "(FwdKL, 0, AdamW)", "(FwdKL, 8, AdamW)"


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """A shares.csv of made-up samples: cells that differ, seeds and problems too."""
    draw, rows = np.random.default_rng(7), {}
    problems = {"id": 8, "easy": 10, "long": 12}
    ease = {of: draw.uniform(0.2, 0.8, number) for of, number in problems.items()}
    for at, name in enumerate(("pi_0", *CELLS)):
        for seed in range(3):
            shift = draw.normal(0.03 * at, 0.1)
            samples = [
                SampleRecord(of, f"{of}-{n:02}", k, "", 1, None, draw.random() < p + shift, "stop")
                for of in problems
                for n, p in enumerate(ease[of])
                for k in range(4)
            ]
            rows[ScoredRun("m", name, seed)] = sample_share_rows(samples)
    file = tmp_path_factory.mktemp("analyse") / "shares.csv"
    tidy_rows_of_runs("shares", rows).to_csv(file, index=False)
    return file


def gaps_of(file, a, b, outside):
    """Benchmark -> a - b, seeds by problems, in points, of the lines of a shares.csv."""
    opened = gzip.open if file.suffix == ".gz" else open
    found = defaultdict(dict)
    with opened(file, "rt", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            place = row["benchmark"], int(row["seed"]), row["problem_id"]
            found[row["variant"]][place] = 100 * float(row["share"])
    places = [place for place in found[a] if (place[0] != "id") is outside]
    gaps = []
    for benchmark in sorted({place[0] for place in places}):
        seeds = sorted({place[1] for place in places if place[0] == benchmark})
        names = sorted({place[2] for place in places if place[0] == benchmark})
        values = [
            [found[a][benchmark, s, name] - found[b][benchmark, s, name] for name in names]
            for s in seeds
        ]
        gaps.append(np.array(values))
    return gaps


def resampled(gaps, with_seeds, draw, times=6000):
    """The ends of the middle 95 % of means over benchmarks, index by index."""
    means = []
    for _ in range(times):
        seeds = np.arange(len(gaps[0]))
        if with_seeds:
            seeds = draw.integers(len(seeds), size=len(seeds))
        of_each = []
        for of_benchmark in gaps:
            problems = draw.integers(of_benchmark.shape[1], size=of_benchmark.shape[1])
            of_each.append(of_benchmark[np.ix_(seeds, problems)].mean())
        means.append(np.mean(of_each))
    return np.quantile(means, [0.025, 0.975])


def numbers(text):
    return [float(number.replace("−", "-")) for number in re.findall(r"[−+-]?\d+\.\d", text)]


def check(file, shown, a, b, side):
    """A row's cells of one side against numpy's of the lines of the file."""
    gaps, draw = gaps_of(file, a, b, side == "ood"), np.random.default_rng(11)
    assert float(shown[side]) == pytest.approx(np.mean([of.mean() for of in gaps]))
    of_seeds = np.mean([of.mean(axis=1) for of in gaps], axis=0)
    assert numbers(shown[f"{side}.seeds"]) == pytest.approx(of_seeds, abs=0.051)
    for key, with_seeds in (("problems", False), ("both", True)):
        low, high = resampled(gaps, with_seeds, draw)
        slack = 0.06 + 0.05 * (high - low)  # two bootstraps, each of thousands of draws
        assert numbers(shown[f"{side}.{key}"]) == pytest.approx([low, high], abs=slack)


def rows_by_label(table):
    keys = [column.key for column in table.columns]
    return {
        row.label: {key: cell.value for key, cell in zip(keys, row.cells, strict=True)}
        for row in table.rows
    }


@pytest.mark.slow
@pytest.mark.parametrize("side", ["id", "ood"])
def test_intervals_are_numpys_of_the_lines_of_the_file(made_up, side):
    table = table_problems_and_seeds.build(read_tidy("shares", made_up), ["m"], CELLS)
    rows = rows_by_label(table)
    check(made_up, rows[f"{PAPER} − π₀"], "hellinger-1.0-kfac-30", "pi_0", side)
    ends = "fwdkl-4.0-adamw-30", "fwdkl-0.0-adamw-30"
    check(made_up, rows[f"{WITH_TERM} − {FWDKL}"], *ends, side)


@pytest.mark.parametrize("folder", SHIPPED, ids=lambda folder: folder.name)
def test_shipped_intervals_are_numpys_of_the_shipped_file(folder):
    shipped = json.loads((folder / "shipped.json").read_text(encoding="utf-8"))
    parts = shipped["outputs"]["table_problems_and_seeds"]["parts"]
    file = tidy_path(folder.name, "shares")
    words = table_problems_and_seeds.table_cells_with_seeds(parts)
    names = {of: name for name, of in words.items()} | {"π₀": "pi_0"}
    with (folder / "table_problems_and_seeds.csv").open(encoding="utf-8") as lines:
        rows = [*csv.DictReader(lines)]
    for shown in rows[:2] + rows[-2:]:
        a, b = next(iter(shown.values())).split(" − ")
        check(file, shown, names[a], names[b], "ood")


def test_rows_are_gains_then_pairs_of_one_part_and_those_of_the_papers_method(made_up):
    table = table_problems_and_seeds.build(read_tidy("shares", made_up), ["m"], CELLS)
    assert [row.label for row in table.rows] == [
        f"{PAPER} − π₀",
        "(Hellinger, 0, AdamW) − π₀",
        f"{WITH_TERM} − π₀",
        f"{FWDKL} − π₀",
        f"{PAPER} − (Hellinger, 0, AdamW)",
        f"{PAPER} − {WITH_TERM}",
        f"{PAPER} − {FWDKL}",
        f"(Hellinger, 0, AdamW) − {FWDKL}",
        f"{WITH_TERM} − {FWDKL}",
    ]


@pytest.mark.parametrize("name", ["smollm2_parts", "smollm2_seeds"])
def test_every_difference_that_the_page_asks_for_is_a_row(root, name):
    study = resolve_study(load(root / "params.yaml"), name)
    assert "shares" in RunFolders(study).tidy_shown()  # what `ship` copies
    parts = settings("table_problems_and_seeds", study)["parts"]
    shares = made_up_tables(study)["shares"]
    labels = [
        row.label for row in table_problems_and_seeds.build(shares, ["smollm2-135m"], parts).rows
    ]
    assert f"{PAPER} − {FWDKL}" in labels
    asked = {f"{PAPER} − (RevKL, 0, AdamW)"}
    if name == "smollm2_parts":
        asked = {
            f"{WITH_TERM} − {FWDKL}",
            f"(Hellinger, 0, AdamW) − {FWDKL}",
            f"(FwdKL, 0, K-FAC) − {FWDKL}",
            f"{PAPER} − (Hellinger, 0, K-FAC)",
            f"{PAPER} − (FwdKL, 8, K-FAC)",
            f"{PAPER} − (Hellinger, 8, AdamW)",
            f"{PAPER} − (JSD, 8, K-FAC)",
        }
    assert asked <= {*labels}


def test_the_program_prints_the_same_of_a_file_and_any_reference(made_up, capsys):
    program = runpy.run_path(str(ROOT / "analysis/paired_by_problem.py"))
    program["main"](made_up, reference="fwdkl-0.0-adamw-30")
    printed = capsys.readouterr().out
    (line,) = [text for text in printed.splitlines() if text.startswith("| fwdkl-4.0-adamw-30 ")]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    table = table_problems_and_seeds.build(read_tidy("shares", made_up), ["m"], CELLS)
    row = rows_by_label(table)[f"{WITH_TERM} − {FWDKL}"]
    for start, side in ((1, "id"), (5, "ood")):
        difference, low, high = numbers(cells[start + 1])
        assert difference == pytest.approx(row[side], abs=0.051)
        assert [low, high] == numbers(row[f"{side}.problems"])
        assert numbers(cells[start + 2]) == numbers(row[f"{side}.both"])
        assert numbers(cells[start + 3]) == numbers(row[f"{side}.seeds"])
    with pytest.raises(SystemExit, match="no run nothing on m.*\nHint: it has pi_0"):
        program["main"](made_up, reference="nothing")


def test_a_run_without_one_of_the_problems_is_refused(made_up, tmp_path):
    table = pd.read_csv(made_up)
    table.drop(index=3).to_csv(tmp_path / "shares.csv", index=False)
    with pytest.raises(ValueError, match="pi_0 on m, seed 0, has 29 rows; expected 30"):
        read_tidy("shares", tmp_path / "shares.csv")
    table.assign(share=table["share"] * 2).to_csv(tmp_path / "shares.csv", index=False)
    with pytest.raises(ValueError, match="share is .*; expected a number from 0 to 1"):
        read_tidy("shares", tmp_path / "shares.csv")
