"""Sentences of tables' notes, captions and pages; `SENTENCES` are those of whole pages, by name."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import pandas as pd
import yaml

from geosd.scores.statistics import FEWEST_FOR_INTERVAL
from geosd.scores.tidy import RUN_COLUMNS

_FILE = Path(__file__).with_name("sentences.yaml")
SENTENCES: Mapping[str, str] = yaml.safe_load(_FILE.read_text(encoding="utf-8"))


def accuracy_in_sentence(scores: pd.DataFrame) -> str:
    """The name of the accuracy, with its k, for notes and axis labels, e.g. `avg@16`."""
    ks = sorted(scores.loc[scores["metric"] == "avg@k", "k"].unique())
    return " / ".join(f"avg@{k}" for k in ks)


def number_of_runs_sentence(scores: pd.DataFrame) -> str:
    """How many runs a method has, in words for a table's note, e.g. `3 runs` or `1 to 3 runs`."""
    counts = scores.groupby(["model", "variant"])["seed"].nunique()
    low, high = counts.min(), counts.max()
    runs = "1 run" if high == 1 else f"{high} runs"
    return runs if low == high else f"{low} to {runs}"


def runs_in_words(source_data: Iterable[Path], models: Iterable[str], intervals: bool) -> str:
    """How many runs a caption's means are over, by the tidy files; empty where none is of runs.

    With `intervals` it says what those of a figure are, too.
    """
    for path in source_data:
        columns = pd.read_csv(path, nrows=0).columns.intersection(RUN_COLUMNS)
        if "seed" not in columns:
            continue
        runs = pd.read_csv(path, usecols=list(columns)).drop_duplicates()
        if models:
            runs = runs[runs["model"].isin(list(models))]
        n = f" n = {number_of_runs_sentence(runs)}"
        draws = runs.groupby("model")["draw"].nunique().max() if "draw" in runs else 1
        if draws > 1:
            units, unit = draws, "base models"
            n += f" on {draws} base models"
        else:
            units, unit = runs.groupby(["model", "variant"])["seed"].nunique().max(), "runs"
        if not intervals:
            return f"{n}."
        if units < FEWEST_FOR_INTERVAL:
            return f"{n}, each drawn: too few for an interval."
        return f"{n}; 95 % intervals of the mean are Student's t over the {unit}."
    return ""
