"""Sample a checkpoint on the test problems and keep every sample, graded.

Writes `samples.jsonl`, the same bytes for the same checkpoint, problems and seed, and a manifest.
Samples that another run has of the same are taken from there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from geosd.config import load as load_params
from geosd.config import resolve
from geosd.config import settings as settings_of
from geosd.evaluation.sampling import evaluate
from geosd.files import read_jsonl, write_json, write_jsonl
from geosd.models.checkpoints import load_tokenizer
from geosd.problems.encoding import Encoding, stop_token_ids
from geosd.problems.records import Problem
from geosd.problems.sources import get_data_source
from geosd.provenance.manifest import manifest, sha256
from geosd.provenance.reuse import origin, take, twin, words_of
from geosd.rollout.build import build_sampler
from geosd.rollout.sampler import SamplingParams
from geosd.steps import begin


def main(
    study: str,
    model: str,
    variant: str,
    seed: int,
    checkpoint: Path,
    problems: Path,
    out: Path,
    params: Path = Path("params.yaml"),
    others: tuple[Path, ...] = (),
) -> None:
    """Sample a checkpoint on the test problems.

    Args:
        study: Name of the study.
        model: Name of the model.
        variant: Name of the variant; pi_0 is the base model.
        seed: Seed of the samples.
        checkpoint: Folder of the trained student, or of the base model.
        problems: Test problems.
        out: Folder of `samples.jsonl` and `manifest.json`.
        params: The configuration.
        others: Folders in which other runs may have the same samples.
    """
    began = time.monotonic()
    settings = settings_of("evaluate", resolve(load_params(params), study), model)
    inputs = {path: sha256(path) for path in (checkpoint / "model.safetensors", problems)}
    made_of = {
        "settings": settings,
        "seed": seed,
        "inputs": list(inputs.values()),
        "words": words_of(checkpoint),
    }
    taken_from = twin(others, out, made_of)
    if taken_from is None:
        progress = f"{model}, {variant}, seed {seed}"
        sampled = _sample(settings, checkpoint, problems, seed, out, progress)
    else:
        sampled = take(taken_from, out)["sampler"]
    told = {**settings, "model": model, "variant": variant, "seed": seed}
    made = manifest(inputs, told, time.monotonic() - began)
    made |= origin(made_of, out, taken_from)
    write_json(out / "manifest.json", {**made, "sampler": sampled})


def _sample(
    settings: Mapping[str, Any],
    checkpoint: Path,
    problems: Path,
    seed: int,
    out: Path,
    progress: str,
) -> dict[str, Any]:
    """Write the graded samples; return what sampled them."""
    tokenizer, generation = load_tokenizer(checkpoint)
    source = get_data_source(settings["source"])
    prompts = source.prompts(tokenizer, settings["thinking"])
    encoding = Encoding(tokenizer, prompts, stop_token_ids(generation))
    sampler = build_sampler(settings["rollout"], checkpoint, encoding, progress=progress)
    decoding = SamplingParams(
        settings["temperature"], settings["top_p"], settings["response_tokens"]
    )
    with closing(source.grader()) as grade:
        rows = evaluate(
            sampler,
            encoding,
            grade,
            read_jsonl(problems, Problem),
            samples=settings["samples"],
            coverage=settings["coverage"],
            decoding=decoding,
            seed=seed,
        )
    write_jsonl(out / "samples.jsonl", rows)
    return sampler.record()


if __name__ == "__main__":
    begin(main)
