"""Sample the base model on the training problems, and keep what verifies as privileged context.

A job that was killed, or ended by SIGTERM, goes on from its scratch folder, as an evaluation does.
"""

from __future__ import annotations

from pathlib import Path

from geosd.cli.job import Job
from geosd.files import write_json, write_jsonl
from geosd.problems.records import read_problems
from geosd.provenance.proof import prove, prove_checkpoint
from geosd.sampling.graded_sampler import Draw, open_checkpoint
from geosd.sampling.kept_samples import KeptSamples
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.solution_pool import count_pool, pool_solutions, pool_summary
from geosd.seeds import seed_of


def main(
    study: str,
    model: str,
    base: Path,
    problems: Path,
    out: Path,
    scratch: Path,
    draw: int = 0,
    params: Path = Path("params.yaml"),
) -> None:
    """Build a model's pool of verified solutions from rollouts of pi_0.

    Args:
        scratch: Folder of the rollouts that a killed job continues from.
    """
    job = Job("pool", params, study, model, draw=draw)
    settings = job.settings
    inputs = prove_checkpoint(base) | prove([problems])
    training = read_problems(problems)
    opened = open_checkpoint(base, settings, f"pool of {model}")
    kept = KeptSamples(scratch, job.identity(inputs, precision=opened.precision))
    rollouts = Draw(training, range(settings["rollouts"]), seed_of(settings["seed"], "pool"))
    sampling = SamplingParams(settings["temperature"], 1.0, settings["response_tokens"])
    with opened.graded(kept) as sampler:
        rows = pool_solutions(training, sampler.draw([rollouts], sampling), settings["keep"])
    print(pool_summary(rows))
    write_jsonl(out / "pool.jsonl", rows)
    write_json(out / "counts.json", {**count_pool(rows), "sampler": kept.record()})
    job.write_manifest(out, inputs, draw=job.draw, precision=opened.precision)
    kept.clear()
