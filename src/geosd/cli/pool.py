"""Sample the base model on the training problems, and keep what verifies as privileged context."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from geosd.cli.job import Job
from geosd.files import write_json, write_jsonl
from geosd.models.load_and_save import load_tokenizer
from geosd.problems.records import read_problems
from geosd.problems.sources import get_data_source
from geosd.provenance.proof import prove, prove_checkpoint
from geosd.sampling.build import build_sampler, resolve_engine
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.solution_pool import count_pool, pool_solutions, pool_summary
from geosd.seeds import seed_of


def main(
    study: str,
    model: str,
    base: Path,
    problems: Path,
    out: Path,
    draw: int = 0,
    params: Path = Path("params.yaml"),
) -> None:
    """Build a model's pool of verified solutions from rollouts of pi_0."""
    job = Job("pool", params, study, model, draw=draw)
    settings = job.settings
    inputs = prove_checkpoint(base) | prove([problems])
    training = read_problems(problems)
    engine = resolve_engine(settings["rollout"])
    tokenizer, generation = load_tokenizer(base)
    source = get_data_source(settings["source"])
    encoding = source.encoding(tokenizer, settings["thinking"], generation)
    sampler = build_sampler(engine, base, encoding, progress=f"pool of {model}")
    with closing(source.grader()) as grade:
        rows = pool_solutions(
            training,
            sampler,
            encoding,
            grade,
            rollouts=settings["rollouts"],
            keep=settings["keep"],
            sampling=SamplingParams(settings["temperature"], 1.0, settings["response_tokens"]),
            seed=seed_of(settings["seed"], "pool"),
        )
    print(pool_summary(rows))
    write_jsonl(out / "pool.jsonl", rows)
    write_json(out / "counts.json", {**count_pool(rows), "sampler": sampler.record()})
    job.write_manifest(out, inputs, draw=job.draw, precision=engine["precision"])
