"""Sample a checkpoint on the test problems and keep every sample, graded.

Writes `samples.jsonl`, the same bytes for the same checkpoint, problems and seed, and, last, a
manifest.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from geosd.cli.job import Job
from geosd.evaluation.sampling import evaluate
from geosd.files import write_jsonl
from geosd.models.load_and_save import load_tokenizer
from geosd.problems.grading import reason_counts
from geosd.problems.records import read_problems
from geosd.problems.sources import get_data_source
from geosd.provenance.proof import prove, prove_checkpoint
from geosd.sampling.build import build_sampler, resolve_engine
from geosd.sampling.sampler import SamplingParams


def main(
    study: str,
    model: str,
    variant: str,
    seed: int,
    checkpoint: Path,
    problems: Path,
    out: Path,
    params: Path = Path("params.yaml"),
) -> None:
    """Evaluate a checkpoint: sample it on the test problems, and grade each sample.

    Args:
        variant: What the progress bar calls the checkpoint; pi_0 is the base model.
    """
    job = Job("evaluate", params, study, model, seed=seed)
    settings = job.settings
    inputs = prove_checkpoint(checkpoint) | prove([problems])
    tested = read_problems(problems)
    engine = resolve_engine(settings["rollout"])
    tokenizer, generation = load_tokenizer(checkpoint)
    source = get_data_source(settings["source"])
    encoding = source.encoding(tokenizer, settings["thinking"], generation)
    sampler = build_sampler(
        engine, checkpoint, encoding, progress=f"{model}, {variant}, seed {seed}"
    )
    decoding = SamplingParams(
        settings["temperature"], settings["top_p"], settings["response_tokens"]
    )
    with closing(source.grader()) as grade:
        rows = evaluate(
            sampler,
            encoding,
            grade,
            tested,
            samples=settings["samples"],
            coverage=settings["coverage"],
            decoding=decoding,
            seed=seed,
        )
    print(reason_counts(row.reason for row in rows))
    write_jsonl(out / "samples.jsonl", rows)
    job.write_manifest(
        out,
        inputs,
        model=model,
        seed=seed,
        draw=job.draw,
        precision=engine["precision"],
        sampler=sampler.record(),
    )
