"""A run's evaluation in the format Every Eval Ever 0.3.0: one aggregate, and a row a sample.

https://github.com/evaleval/every_eval_ever; what nobody recorded is left out.
"""

import hashlib
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from geosd.problems.records import Problem, SampleRecord, is_ood_record
from geosd.scores.score_table import ScoredRun

SCHEMA_VERSION = "0.3.0"
LIBRARY, DEVELOPER = "geosd", "geosd"
GENERATION = {"temperature": "temperature", "top_p": "top_p", "response_tokens": "max_tokens"}
"""Settings of the evaluation -> their names in the format."""


@dataclass(frozen=True)
class Evaluator:
    """Who evaluated: an organisation, and what it is to the model, in the format's words."""

    organization: str
    relationship: str


@dataclass(frozen=True)
class ExportedRun:
    """A run's aggregate, its rows, and where the format has both from the export's folder."""

    aggregate: dict[str, Any]
    rows: list[dict[str, Any]]
    path: str
    """Of the aggregate, without its ending; the rows' path is this and `_samples.jsonl`."""


def exported_run(
    study: str,
    run: ScoredRun,
    samples: Sequence[SampleRecord],
    problems: Sequence[Problem],
    manifest: Mapping[str, Any],
    evaluator: Evaluator,
    created: int,
) -> ExportedRun:
    """A run's samples and their scores in the format.

    Args:
        samples: Every sample of the run.
        problems: Those that were sampled, and maybe others.
        manifest: That of the run's evaluation.
        created: Unix time of the export, in seconds.
    """
    name = f"{run.model}-{run.variant}-seed-{run.seed}"
    model, evaluation = f"{DEVELOPER}/{name}", f"{study}/{DEVELOPER}/{name}/{created}"
    asked = {(each.benchmark, each.id): each for each in problems}
    path = f"data/{study}/{DEVELOPER}/{name}/{_identifier(name, manifest['outputs'])}"
    rows = [
        _row(each, asked[each.benchmark, each.problem_id], model, evaluation) for each in samples
    ]
    benchmarks = dict.fromkeys(each.benchmark for each in samples)
    aggregate: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation,
        "retrieved_timestamp": str(created),
        "source_metadata": {
            "source_name": f"Study {study} of geosd",
            "source_type": "evaluation_run",
            "source_organization_name": evaluator.organization,
            "evaluator_relationship": evaluator.relationship,
        },
        "eval_library": _library(manifest["code"]),
        "model_info": _model(run, name, model, manifest),
        "evaluation_results": [
            _result(each, [s for s in samples if s.benchmark == each], manifest["settings"])
            for each in benchmarks
        ],
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": f"{path}_samples.jsonl",
            "hash_algorithm": "sha256",
            "total_rows": len(rows),
        },
    }
    if "date" in manifest:
        aggregate["evaluation_timestamp"] = manifest["date"]
    return ExportedRun(aggregate, rows, path)


def _identifier(name: str, outputs: Mapping[str, str]) -> str:
    """A UUID, of version 4 in form as the format asks, that follows from name and samples."""
    hashed = hashlib.sha256(f"{name} {outputs['samples.jsonl']}".encode()).digest()
    return str(uuid.UUID(bytes=hashed[:16], version=4))


def _library(code: Mapping[str, Any]) -> dict[str, Any]:
    library = {"name": LIBRARY, "version": code.get("version", "unknown")}
    details = {key: str(code[key]) for key in ("commit", "digest", "dirty") if code.get(key)}
    return {**library, "additional_details": details}


def _model(run: ScoredRun, name: str, model: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": name,
        "id": model,
        "additional_details": {
            "deployment_type": "self_deployed",
            "model_availability": "unknown",
            "base_model": run.model,
            "method": run.variant,
            "seed": str(run.seed),
            "draw": str(run.draw),
        },
    }
    sampler = manifest.get("sampler", {})
    engine = {"name": sampler.get("engine"), "version": sampler.get("version")}
    known = {key: value for key, value in engine.items() if value is not None}
    return {**described, "inference_engine": known} if known else described


def _result(
    benchmark: str, samples: Sequence[SampleRecord], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """A benchmark's accuracy: the mean over problems of the share of right samples."""
    verdicts: dict[str, list[bool]] = {}
    for sample in samples:
        verdicts.setdefault(sample.problem_id, []).append(sample.correct)
    shares = [fmean(of_problem) for of_problem in verdicts.values()]
    k = max(map(len, verdicts.values()))
    details: dict[str, Any] = {"score": fmean(shares)}
    if len(shares) > 1:
        error = stdev(shares) / math.sqrt(len(shares))
        details["uncertainty"] = {
            "standard_error": {"value": error, "method": "analytic, over problems"},
            "num_samples": len(shares),
        }
    split = "OOD" if is_ood_record(benchmark) else "ID"
    source = {"split": split, "problems": str(len(shares)), "source": str(settings["source"])}
    given = {new: settings[old] for old, new in GENERATION.items() if old in settings}
    return {
        "evaluation_result_id": _result_id(benchmark),
        "evaluation_name": benchmark,
        "source_data": {
            "dataset_name": benchmark,
            "source_type": "other",
            "additional_details": source,
        },
        "metric_config": {
            "metric_id": "accuracy",
            "metric_name": f"avg@{k}",
            "metric_kind": "accuracy",
            "metric_unit": "proportion",
            "metric_parameters": {"k": k},
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": 0,
            "max_score": 1,
        },
        "score_details": details,
        "generation_config": {"generation_args": given},
    }


def _row(sample: SampleRecord, problem: Problem, model: str, evaluation: str) -> dict[str, Any]:
    answers = []
    if sample.answer is not None:
        answers = [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": sample.answer,
                "extraction_method": "custom",
                "is_terminal": True,
            }
        ]
    noted = {"sample": sample.sample, "finish": sample.finish, "output_tokens": sample.tokens}
    if sample.reason is not None:
        noted["reason"] = sample.reason
    asked = (problem.question + problem.answer).encode()
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation,
        "model_id": model,
        "evaluation_name": sample.benchmark,
        "evaluation_result_id": _result_id(sample.benchmark),
        "sample_id": sample.problem_id,
        "sample_hash": hashlib.sha256(asked).hexdigest(),
        "interaction_type": "single_turn",
        "input": {"raw": problem.question, "reference": [problem.answer]},
        "output": {"raw": [sample.text]},
        "answer_attribution": answers,
        "evaluation": {"score": float(sample.correct), "is_correct": sample.correct},
        "metadata": {key: str(value) for key, value in noted.items()},
    }


def _result_id(benchmark: str) -> str:
    return f"{benchmark}/accuracy"
