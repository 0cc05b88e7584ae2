"""What ideal policies would reach in the search world: the table of docs/search.md.

    python analysis/search_policies.py

No model is involved: solutions are drawn from policies, with temperature and nucleus.
"""

from __future__ import annotations

from dataclasses import astuple, fields

import tyro

from geosd.problems.search.equations import BENCHMARKS
from geosd.problems.search.ideal_policies import IDEAL_POLICIES, Reached, simulate
from geosd.seeds import seed_of


def main(
    problems: int = 1000,
    samples: int = 16,
    cap: int = 52,
    temperature: float = 0.6,
    top_p: float = 0.95,
    seed: int = 0,
) -> None:
    """Print one row for each ideal policy; all in per cent.

    Args:
        problems: Of each benchmark.
        samples: Of each problem.
        cap: Tokens of a sample, the end included.
        temperature: Of the draws.
        top_p: Nucleus of the draws.
        seed: Of questions and draws.
    """
    names = [benchmark.name for benchmark in BENCHMARKS[1:]]
    ood = ["OOD", f"pass@{samples}", "false consensus", "truncated", "change ID", "change OOD"]
    head = ["policy", "ID", *names, *ood]
    print(f"| {' | '.join(head)} |\n{'|---' * len(head)}|", flush=True)
    start: tuple[float, float] | None = None
    for name, policy in IDEAL_POLICIES.items():
        sampled = policy.sampled(temperature, top_p)
        inside, *outside = (
            simulate(sampled, b, cap, problems, samples, seed_of(seed, b.name)) for b in BENCHMARKS
        )
        mean = average(outside)
        start = start or (inside.accuracy, mean.accuracy)
        changes = inside.accuracy - start[0], mean.accuracy - start[1]
        shares = [inside.accuracy, *(reached.accuracy for reached in outside), *astuple(mean)]
        cells = [f"{100 * share:.1f}" for share in shares]
        cells += [f"{100 * change:+.1f}" for change in changes]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def average(reached: list[Reached]) -> Reached:
    """The mean over benchmarks."""
    return Reached(
        *(sum(getattr(r, f.name) for r in reached) / len(reached) for f in fields(Reached))
    )


if __name__ == "__main__":
    tyro.cli(main)
