"""Folders that are ready for the hub: a trained student or a study's problems, with its card.

Results stay as they are: DVC knows their folders by the hashes of all files, so a card with scores
lies elsewhere.
"""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from geosd.config import ConfigError, load, resolve_study
from geosd.config.run_folders import RESULTS, RunFolders
from geosd.files import WEIGHTS, copy_file, link_or_copy_file
from geosd.models.model_card import OWN_LICENCE, BenchmarkResult, write_model_card
from geosd.problems.data_card import write_data_card
from geosd.problems.dataset_download import load_dataset_catalogue
from geosd.problems.records import read_problems
from geosd.problems.sources import get_data_source
from geosd.provenance.manifest import MANIFEST, read_manifest
from geosd.provenance.proof import prove, prove_checkpoint
from geosd.scores.statistics import GroupStatistics, contrast_test
from geosd.scores.tidy import read_tidy, select_tidy_rows

MADE_UP = ("search", "word-problems")
"""Beginnings of the data sources whose problems geosd makes up."""


def model(
    study: str,
    model: str,
    variant: str,
    seed: int,
    out: Path,
    params: Path = Path("params.yaml"),
) -> None:
    """Put a trained student and its card into a folder for the hub.

    The card has the scores of the student, with intervals over problems, once the study is
    analysed. `hf upload NAME OUT` then uploads the folder.

    Args:
        out: The new folder.

    Raises:
        ConfigError: The study does not train the variant.
    """
    resolved = resolve_study(load(params), study)
    run = (model, variant, seed)
    known = {(row.model, row.variant, row.seed): row for row in RunFolders(resolved).rows()}
    if run not in known or not known[run].train:
        raise ConfigError(
            f"Study {study} trains no {variant} of {model} with seed {seed}; it trains"
            f" {', '.join(resolved.trained)} of {', '.join(resolved.models)} with seeds"
            f" {', '.join(map(str, resolved.seeds))}.\n"
            f"Hint: results/{study}/runs.csv lists the runs."
        )
    trained = Path(known[run].train)
    prove_checkpoint(trained)
    made = read_manifest(trained)
    files = [trained / name for name in made["outputs"] if "/" not in name]
    prove(files)
    for file in (*files, trained / MANIFEST):
        if file.name == WEIGHTS:
            link_or_copy_file(file, out / file.name)
        else:
            copy_file(file, out / file.name)
    write_model_card(
        out,
        model=model,
        seed=seed,
        settings=json.loads((trained / "settings.json").read_text(encoding="utf-8")),
        base=resolved.section("base", model),
        results=_results(Path(RESULTS, study, "analyse/shares.csv"), *run),
        **made["card"],
    )
    print(f"Model    {out}: {len(files) + 2} files\nUpload   hf upload NAME {out}")


def data(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Put a study's problems and their card into a folder for the hub.

    Args:
        out: The new folder.
    """
    resolved = resolve_study(load(params), study)
    folder = Path(RunFolders(resolved).data)
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    counts = {}
    for file in sorted(folder.glob("*.jsonl")):
        if file.stat().st_size == 0:  # a selection's splits, where the study selects nothing
            continue
        prove([file])
        counts[file.stem] = dict(Counter(p.benchmark for p in read_problems(file)))
        copy_file(file, out / file.name)
    source = resolved.section("data")["source"]
    write_data_card(
        out,
        study=study,
        source=source,
        counts=counts,
        card=card,
        limits=get_data_source(source).limits,
        licence=OWN_LICENCE if source.startswith(MADE_UP) else None,
        origins={entry.repo: entry.revision for entry in load_dataset_catalogue(source)},
    )
    print(f"Data     {out}: {', '.join(f'{name}.jsonl' for name in counts)}")
    print(f"Upload   hf upload --repo-type dataset NAME {out}")


def _results(shares: Path, model: str, variant: str, seed: int) -> list[BenchmarkResult]:
    """The scores of a run by the study's table of shares; none before it is analysed."""
    if not shares.exists():
        return []
    rows = select_tidy_rows(read_tidy("shares", shares), model=model, variant=variant, seed=seed)
    return [
        _result(str(benchmark), of_benchmark)
        for benchmark, of_benchmark in rows.groupby("benchmark", sort=False)
    ]


def _result(benchmark: str, rows: pd.DataFrame) -> BenchmarkResult:
    """Mean share of right samples of a run on a benchmark, and Student's interval over problems."""
    test = contrast_test([GroupStatistics.of(100 * rows["share"])])
    low, high = np.clip([test.low, test.high], 0, 100)  # NaN stays
    samples = int(rows["samples"].iloc[0])
    return BenchmarkResult(benchmark, len(rows), samples, test.difference, float(low), float(high))
