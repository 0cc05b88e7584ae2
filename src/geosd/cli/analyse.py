"""Turn the samples and step logs of a study into tidy tables of numbers. No model is needed."""

from collections import Counter
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from geosd.cli.job import StepJob
from geosd.config.run_folders import RunFoldersRow, read_run_folders
from geosd.files import DamagedFileError, remake_file_hint, write_json, write_text
from geosd.provenance.proof import WEIGHTS, prove, prove_run
from geosd.scores import sample_tables, score_table, step_log_tables
from geosd.scores.consensus import consensus_rows
from geosd.scores.sample_tables import read_sample_table
from geosd.scores.score_table import ScoredRun
from geosd.scores.tidy import tidy_rows_of_runs


def main(study: str, runs: Path, out: Path, params: Path = Path("params.yaml")) -> None:
    """Analyse a study: score every run from its samples, and read off its drift."""
    job = StepJob("analyse", params, study)
    settings = job.settings
    index = prove([runs])
    rows = {
        ScoredRun(row.model, row.variant, row.seed, row.draw): row for row in read_run_folders(runs)
    }
    expected = set(product(settings["models"], settings["methods"], settings["seeds"]))
    found = {(run.model, run.variant, run.seed) for run in rows}
    other = expected ^ found
    if other:
        raise DamagedFileError(
            f"{runs}: run {min(other)} is missing, or is none of the study's; expected are the runs"
            f" of models, methods and seeds of study {study}.\n{remake_file_hint(runs)}"
        )
    tables, inputs = analysed(rows, settings)
    inputs |= index
    for name, table in tables.items():
        write_text(out / f"{name}.csv", table.to_csv(index=False))
    write_json(out / "metrics.json", score_table.score_table_by_variant(tables["scores"]))
    written = [*(out / f"{name}.csv" for name in tables), out / "metrics.json"]
    job.write_manifest(out, inputs, written)


def analysed(
    rows: Mapping[ScoredRun, RunFoldersRow], settings: Mapping[str, Any]
) -> tuple[dict[str, pd.DataFrame], dict[Path, str]]:
    """The tidy tables of runs by name, and the hash of each file that they are made of.

    Raises:
        UnprovenFileError: Samples are of another run than the folder they lie in.
        DamagedFileError: A file of a run is not whole, or runs of a model differ in problems.
    """
    logs = {run: Path(row.train) / "steps.csv" for run, row in rows.items() if row.train}
    scored, shares, consensus, habits = {}, {}, {}, {}
    inputs: dict[Path, str] = {}
    problems: dict[str, dict[Path, Counter[tuple[str, str]]]] = {}
    for run, row in rows.items():
        named = {"model": run.model, "seed": run.seed, "draw": run.draw}
        prove_run(Path(row.evaluate), Path(row.train or row.base) / WEIGHTS, **named)
        file = Path(row.evaluate) / "samples.jsonl"
        # One at a time: those of all would not fit into memory.
        samples = read_sample_table(run, file)
        inputs |= prove([file])
        of_model = problems.setdefault(run.model, {})
        of_model[file] = Counter((sample.benchmark, sample.problem_id) for sample in samples)
        k = settings["samples"]
        scored_samples = [s for s in samples if s.sample < k]
        scored[run] = score_table.score_run(scored_samples, settings["pass_k"])
        shares[run] = sample_tables.sample_share_rows(scored_samples)
        if settings["source"].startswith("search"):
            habits[run] = sample_tables.sample_habit_rows(scored_samples)
        consensus[run] = consensus_rows(samples, first=k)
        if row.pool:
            counts = Path(row.pool) / "counts.json"
            inputs |= prove([counts])
            of_pool = score_table.score_pool(counts)
            scored[run] = pd.concat([scored[run], of_pool], ignore_index=True)
    for of_model in problems.values():
        sample_tables.check_sample_problems(of_model)
    drift = step_log_tables.collect_step_log_drift(logs)
    inputs |= prove(logs.values())
    tables = {
        "scores": score_table.collect_scores(scored),
        "shares": tidy_rows_of_runs("shares", shares),
        "drift": drift,
        "consensus": tidy_rows_of_runs("consensus", consensus),
        "habits": tidy_rows_of_runs("habits", habits),
        "training_curves": step_log_tables.collect_training_curves(logs),
        "drift_over_steps": step_log_tables.collect_step_log_drifts(logs),
    }
    return tables, inputs
