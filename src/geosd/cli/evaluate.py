"""Sample a checkpoint on the test problems and keep every sample, graded.

Writes `samples.jsonl`, the same bytes for the same checkpoint, problems and seed, and, last, a
manifest. A job that was killed goes on from its scratch folder. SIGTERM ends it after the chunk
under way; the exit code 75 says that the same command goes on from there.
"""

from pathlib import Path

from geosd.cli.job import StepJob
from geosd.evaluation.benchmarks import sample_benchmarks
from geosd.json_lines import write_jsonl
from geosd.problems.grading import grading_reason_counts
from geosd.problems.records import read_problems
from geosd.provenance.proof import prove, prove_checkpoint
from geosd.sampling.graded_sampler import open_graded_sampler
from geosd.sampling.kept_samples import KeptSamples
from geosd.sampling.sampler import SamplingParams


def main(
    study: str,
    model: str,
    variant: str,
    seed: int,
    checkpoint: Path,
    problems: Path,
    out: Path,
    scratch: Path,
    params: Path = Path("params.yaml"),
) -> None:
    """Evaluate a checkpoint: sample it on the test problems, and grade each sample.

    Args:
        variant: What the progress bar calls the checkpoint; pi_0 is the base model.
        scratch: Folder of the samples that a killed evaluation continues from.
    """
    job = StepJob("evaluate", params, study, model, variant, seed=seed, out=out)
    settings = job.settings
    inputs = prove_checkpoint(checkpoint) | prove([problems])
    tested = read_problems(problems)
    opened = open_graded_sampler(checkpoint, settings, f"{model}, {variant}, seed {seed}")
    kept = KeptSamples(scratch, job.identity(inputs, seed=seed, precision=opened.precision))
    decoding = SamplingParams(
        settings["temperature"], settings["top_p"], settings["response_tokens"]
    )
    with opened.graded(kept) as sampler:
        rows = sample_benchmarks(
            sampler,
            tested,
            samples=settings["samples"],
            coverage=settings["coverage"],
            decoding=decoding,
            seed=seed,
            allocation=settings.get("allocation"),
        )
    print(grading_reason_counts(row.reason for row in rows))
    write_jsonl(out / "samples.jsonl", rows)
    job.write_manifest(
        out,
        inputs,
        model=model,
        seed=seed,
        draw=job.draw,
        precision=opened.precision,
        sampler=kept.record(),
    )
    kept.clear()
