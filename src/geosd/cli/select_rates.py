"""Print the learning rates that a selection chooses, as a study of params.yaml has them.

The block is a study's `variants`, to be pasted. Its comments say by which scores it was chosen, so
a test can hold the numbers of params.yaml to those scores.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from geosd.config import ConfigError, load, resolve_study
from geosd.config.study import Study
from geosd.config.sweeps import swept_values
from geosd.provenance.proof import prove
from geosd.scores.rate_selection import best_common_rate, select_candidate
from geosd.scores.tidy import read_tidy

KEY = "learning_rate"
INDENT = " " * 4
"""Of a study's keys in params.yaml."""


def main(study: str, scores: Path, params: Path = Path("params.yaml")) -> None:
    """Print the learning rates that a selection chooses, by its scores, as YAML to be pasted.

    Raises:
        ConfigError: The study sweeps no learning rate, or none that is clear of a collapse.
        ValueError: A candidate was not validated.
    """
    resolved = resolve_study(load(params), study)
    table = read_tidy("scores", scores)
    print(selected_rates_block(resolved, table, prove([scores])[scores]), end="")


def selected_rates_block(study: Study, scores: pd.DataFrame, sha256: str) -> str:
    """The block `variants` of a study that takes the rates that a selection chooses.

    Args:
        study: The selection.
        scores: Its tidy scores.
        sha256: The SHA-256 of their file.

    Raises:
        ConfigError: The study sweeps no learning rate, or none that is clear of a collapse.
        ValueError: A candidate was not validated.
    """
    swept = swept_values(study, KEY)
    selected = _selected(study, swept, scores)
    # An ablation is its method once more, and the methods weigh the same.
    variants = study.params.variants
    methods = {name: rates for name, rates in swept.items() if variants[name].extends is None}
    lines = [
        "variants:",
        f"  # Chosen by {study.name}; SHA-256 of its scores.csv:",
        f"  # {sha256}",
    ]
    common = best_common_rate(scores, methods)
    if common is not None:
        lines.append(f"  # One rate for all methods would be {_number(common)}.")
    for variant, rates in selected.items():
        lines += _entry(variant, rates)
    return "".join(f"{INDENT}{line}\n" for line in lines)


def _selected(
    study: Study, swept: Mapping[str, Mapping[str, float]], scores: pd.DataFrame
) -> dict[str, dict[str, float]]:
    """Variant -> model -> the rate that is selected among those of its candidates, `swept`."""
    if not swept:
        raise ConfigError(
            f"studies.{study.name}.grid: no variant has a grid of {KEY}, so there is nothing to"
            " select.\nHint: name a study of kind selection, e.g. --study quick_selection."
        )
    selected: dict[str, dict[str, float]] = {}
    without = []
    for variant, rates in swept.items():
        chosen = {model: select_candidate(scores, model, rates) for model in study.models}
        if None in chosen.values():
            without.append(variant)
        selected[variant] = {model: rates[one] for model, one in chosen.items() if one}
    if without:
        raise ConfigError(
            f"studies.{study.name}.grid: {', '.join(sorted(without))}: every rate lies within half"
            " a decade of a collapse.\nHint: add smaller rates; table_selection says which"
            " collapse."
        )
    return selected


def _entry(variant: str, rates: Mapping[str, float]) -> Iterator[str]:
    """The lines of a variant's entry: one rate where the models agree, else one for each."""
    if len(set(rates.values())) == 1:
        yield f"  {variant}: {{training: {_changed(next(iter(rates.values())))}}}"
        return
    yield f"  {variant}:"
    yield "    training_by_model:"
    for model, rate in rates.items():
        yield f"      {model}: {_changed(rate)}"


def _changed(rate: float) -> str:
    return f"{{{KEY}: {_number(rate)}}}"


def _number(rate: float) -> str:
    """A rate as params.yaml has it, 3.0e-5: the shortest text that is read as the same number."""
    return np.format_float_scientific(rate, trim="0", exp_digits=1)
