"""A finished study's evaluations in a format of others: files for each run below a folder."""

import hashlib
import json
import time
from pathlib import Path
from typing import Literal

from geosd.config import load, resolve_study
from geosd.config.run_folders import RESULTS, read_run_folders
from geosd.files import write_json, write_text
from geosd.problems.records import read_problems
from geosd.provenance.manifest import read_manifest
from geosd.scores.every_eval_ever import Evaluator, exported_run
from geosd.scores.sample_tables import read_sample_table
from geosd.scores.score_table import ScoredRun


def main(
    study: str,
    out: Path,
    organization: str,
    format: Literal["every-eval-ever"] = "every-eval-ever",
    relationship: Literal["first_party", "third_party", "collaborative", "other"] = "other",
    created: int | None = None,
    params: Path = Path("params.yaml"),
) -> None:
    """Write a finished study's evaluations, with every sample, in a shared format.

    Args:
        out: The folder; the format's own folder data/ is made in it.
        organization: Who ran the study, which the format asks for.
        format: Every Eval Ever 0.3.0: an aggregate for each run, and its samples as JSON lines.
        relationship: Of that organisation to the models.
        created: Unix time that the files say they were made at; now without it.

    Raises:
        FileNotFoundError: The study is not finished.
    """
    name = resolve_study(load(params), study).name
    index = Path(RESULTS, name, "runs.csv")
    if not index.is_file():
        raise FileNotFoundError(
            f"{index} is missing: study {name} is not finished.\nHint: make run STUDY={name}"
        )
    made_at = int(time.time()) if created is None else created
    written = 0
    for row in read_run_folders(index):
        folder = Path(row.evaluate)
        manifest = read_manifest(folder)
        run = ScoredRun(row.model, row.variant, row.seed, row.draw)
        files = [Path(file) for file in manifest["inputs"] if file.endswith(".jsonl")]
        problems = [problem for file in files for problem in read_problems(file)]
        samples = read_sample_table(run, folder / "samples.jsonl")
        evaluator = Evaluator(organization, relationship)
        exported = exported_run(name, run, samples, problems, manifest, evaluator, made_at)
        text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in exported.rows)
        write_text(out / f"{exported.path}_samples.jsonl", text)
        detailed = exported.aggregate["detailed_evaluation_results"]
        detailed["checksum"] = hashlib.sha256(text.encode()).hexdigest()
        write_json(out / f"{exported.path}.json", exported.aggregate)
        written += 1
    print(f"{out}: {written} runs in the format {format}")
