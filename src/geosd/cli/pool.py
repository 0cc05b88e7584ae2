"""Sample the base model on the training problems, and keep what verifies as privileged context.

Where the study says so, the data set's own worked solutions stand before the samples, or alone.

A job that was killed, or ended by SIGTERM, goes on from its scratch folder, as an evaluation does.
"""

from contextlib import closing
from pathlib import Path

from geosd.cli.job import StepJob
from geosd.files import write_json
from geosd.json_lines import write_jsonl
from geosd.problems.problem_splits import read_split_solutions
from geosd.problems.records import SampleRecord, read_problems
from geosd.problems.sources import get_data_source
from geosd.provenance.proof import prove, prove_checkpoint
from geosd.sampling.graded_sampler import GradedDraw, open_graded_sampler
from geosd.sampling.kept_samples import KeptSamples
from geosd.sampling.sampler import SamplingParams
from geosd.sampling.solution_pool import count_pool, graded_solutions, pool_solutions, pool_summary
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
    """Build a model's pool of verified solutions, from rollouts of pi_0 or given ones.

    Args:
        problems: The training problems; the card of the data set lies in their folder.
        scratch: Folder of the rollouts that a killed job continues from.
    """
    job = StepJob("pool", params, study, model, draw=draw, out=out)
    settings = job.settings
    inputs = prove_checkpoint(base) | prove([problems])
    training = read_problems(problems)
    texts: list[SampleRecord] = []
    kept, more = None, {}
    if "solutions" in settings:
        card = problems.with_name("card.json")
        inputs |= prove([card])
        with closing(get_data_source(settings["source"]).grader()) as grade:
            texts += graded_solutions(training, read_split_solutions(card), grade)
    if settings.get("solutions") != "given":
        opened = open_graded_sampler(base, settings, f"pool of {model}")
        more = {"precision": opened.precision}
        kept = KeptSamples(scratch, job.identity(inputs, **more))
        rollouts = GradedDraw(
            training, range(settings["rollouts"]), seed_of(settings["seed"], "pool")
        )
        sampling = SamplingParams(settings["temperature"], 1.0, settings["response_tokens"])
        with opened.graded(kept) as sampler:
            texts += sampler.draw([rollouts], sampling)
    rows = pool_solutions(training, texts, settings["keep"])
    print(pool_summary(rows))
    write_jsonl(out / "pool.jsonl", rows)
    counts = {**count_pool(rows), "sampler": kept and kept.record()}
    write_json(out / "counts.json", counts)
    job.write_manifest(out, inputs, draw=job.draw, **more)
    if kept:
        kept.clear()
