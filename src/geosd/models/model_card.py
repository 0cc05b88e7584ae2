"""The card of a checkpoint: what it is, how it was made, how well it did, what it is not.

Its front matter is made by huggingface_hub, so the hub reads what is meant.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from geosd.files import write_text
from geosd.problems.dataset_download import DatasetCatalogueEntry, load_dataset_catalogue
from geosd.problems.records import ID
from geosd.provenance.proof import MODEL_CARD

LICENCES = {
    **dict.fromkeys(("Qwen/Qwen3", "Qwen/Qwen2.5-Coder-0.5B", "allenai/Olmo-3-7B"), "apache-2.0"),
    "deepseek-ai/DeepSeek-R1-Distill-Llama-8B": "mit",
}
"""Beginning of a released model's name on the hub -> its licence there."""
OWN_LICENCE = "apache-2.0"
"""Of models that were trained from nothing by geosd, and of problems that it makes up."""

TEXT = """
# {model}, {objective}, seed {seed}

The base model `{model}` after {steps} steps of `{objective}`.

Made by geosd, a reproduction of "Geometric Self-Distillation for Reasoning Generalization". A
study's `runs.csv` says which of its variants this run is, `manifest.json` which code, packages,
machine and inputs made it, `steps.csv` what happened at each step.

## Use

```python
from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("{folder}")
tokenizer = AutoTokenizer.from_pretrained("{folder}")
```

A question is put as `{prompt}`.
{results}
## Settings

```json
{settings}
```

## Limits

{limits}
"""
RESULTS = """
## Results

| benchmark | problems | samples a problem | accuracy in percent, 95 % interval over problems |
|:--|--:|--:|:--|
{rows}

This is one run, with one seed. The interval is Student's over the problems of the benchmark: it
says nothing of other seeds.
"""


@dataclass(frozen=True)
class BenchmarkResult:
    """What a checkpoint scored on a benchmark: the mean share of right samples, in percent.

    `low` and `high` are the ends of its interval over problems, NaN of a single problem or where
    all problems have one share.
    """

    benchmark: str
    problems: int
    samples: int
    accuracy: float
    low: float
    high: float


def write_model_card(
    folder: Path,
    *,
    model: str,
    seed: int,
    prompt: str,
    settings: Mapping[str, Any],
    limits: str,
    base: Mapping[str, Any],
    results: Sequence[BenchmarkResult] = (),
) -> None:
    """Write the model card of a trained student as the README.md of its folder.

    Args:
        folder: Of the student.
        model: Its base model.
        seed: The run's.
        prompt: An example as the student reads it.
        settings: The resolved ones of its training.
        limits: What it must not be taken for.
        base: The section `base` of its base model, which says where that is from.
        results: Its scores, where it was evaluated.
    """
    objective = settings["objective"]["name"]
    name = f"{model}-{objective}-{seed}"
    data = ModelCardData(
        **_origin(base),
        library_name="transformers",
        pipeline_tag="text-generation",
        tags=["geosd", "self-distillation", objective],
        datasets=_training_data(settings["source"]),
        metrics=["accuracy"] if results else None,
        model_name=name if results else None,
        eval_results=_eval_results(settings["source"], results),
    )
    text = TEXT.format(
        model=model,
        objective=objective,
        steps=settings["steps"],
        seed=seed,
        folder=folder,
        prompt=prompt,
        results=_table(results),
        settings=json.dumps(settings, indent=2, sort_keys=True),
        limits=limits,
    )
    card = ModelCard(f"---\n{data.to_yaml()}\n---\n{text}")
    write_text(folder / MODEL_CARD, str(card))


def _origin(base: Mapping[str, Any]) -> dict[str, str]:
    """Licence and base model of the front matter; a model that geosd pretrained has no base."""
    if base.get("pretraining") is not None:
        return {"license": OWN_LICENCE}
    repo = (base.get("checkpoint") or {}).get("repo")
    if repo is None:
        return {"license": "other", "license_name": "that-of-the-base-model"}
    for beginning, licence in LICENCES.items():
        if repo.startswith(beginning):
            return {"base_model": repo, "license": licence}
    link = f"https://huggingface.co/{repo}"
    name = "that-of-the-base-model"
    return {"base_model": repo, "license": "other", "license_name": name, "license_link": link}


def _training_data(source: str) -> list[str] | None:
    """The data sets on the hub that problems are trained on; None where there are none there."""
    entries = (entry for entry in load_dataset_catalogue(source) if entry.name.startswith("train/"))
    return sorted({entry.repo for entry in entries}) or None


def _eval_results(source: str, results: Sequence[BenchmarkResult]) -> list[EvalResult] | None:
    """The results as the hub's model index has them; the interval stands among the arguments."""
    files = {Path(entry.name).stem: entry for entry in load_dataset_catalogue(source)}
    training = next((e for e in files.values() if e.name.startswith("train/")), None)
    found = []
    for result in results:
        entry = training if result.benchmark == ID else files.get(result.benchmark)
        found.append(_eval_result(source, result, entry))
    return found or None


def _eval_result(
    source: str, result: BenchmarkResult, entry: DatasetCatalogueEntry | None
) -> EvalResult:
    arguments: dict[str, Any] = {"samples_per_problem": result.samples}
    if not math.isnan(result.low):
        interval = [round(result.low, 2), round(result.high, 2)]
        arguments["interval_over_problems_95"] = interval
    return EvalResult(
        task_type="text-generation",
        dataset_type=source if entry is None else entry.repo,
        dataset_name=f"{source}: {result.benchmark}",
        dataset_config=result.benchmark,
        dataset_revision=None if entry is None else entry.revision,
        dataset_args={"problems": result.problems},
        metric_type="accuracy",
        metric_name=f"avg@{result.samples}, in percent",
        metric_value=round(result.accuracy, 2),
        metric_args=arguments,
    )


def _table(results: Sequence[BenchmarkResult]) -> str:
    """The section of results; empty without any."""
    rows = []
    for each in results:
        interval = f"[{each.low:.1f}, {each.high:.1f}]"
        if math.isnan(each.low):
            interval = "no interval"
        row = (each.benchmark, each.problems, each.samples, f"{each.accuracy:.1f} {interval}")
        rows.append(f"| {' | '.join(map(str, row))} |")
    return RESULTS.format(rows="\n".join(rows)) if rows else ""
