"""How far each run of a study lies above a reference, with the problem as the unit.

    python analysis/paired_by_problem.py results/smollm2_rates/runs.csv --reference pi_0

For one base model and few seeds: the spread of the test problems is known, that of seeds is not. A
problem's value is the share of its samples that are right, over all seeds. A difference is that of
two means over the same problems; OOD is the mean over the benchmarks. The interval is the middle
95 % of 10,000 resamplings of the problems of each benchmark, the same for both. It says what other
problems would give, not what other base models or seeds would.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from geosd.config.run_folders import read_index
from geosd.json_lines import read_jsonl
from geosd.problems.records import Sample, is_out_of_distribution
from geosd.reporting.tables import markdown_table

RESAMPLES = 10_000


def shares_right(samples: Sequence[Sample]) -> dict[str, dict[str, float]]:
    """Benchmark -> problem -> share of its samples that are right, in the order of the names."""
    counts: dict[str, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        counts[sample.benchmark][sample.problem_id].append(sample.correct)
    return {
        benchmark: {name: float(np.mean(right)) for name, right in sorted(problems.items())}
        for benchmark, problems in sorted(counts.items())
    }


def difference(
    a: Mapping[str, Mapping[str, float]], b: Mapping[str, Mapping[str, float]], seed: int = 0
) -> tuple[float, float, float]:
    """The mean over benchmarks of a - b, in points, and the ends of its interval.

    Raises:
        ValueError: The two have other problems.
    """
    if {name: [*of] for name, of in a.items()} != {name: [*of] for name, of in b.items()}:
        raise ValueError("the two runs have other problems.\nHint: compare runs of one study.")
    draw, drawn, mean = np.random.default_rng(seed), [], []
    for name in a:
        gaps = np.array([*a[name].values()]) - np.array([*b[name].values()])
        mean.append(gaps.mean())
        drawn.append(gaps[draw.integers(len(gaps), size=(RESAMPLES, len(gaps)))].mean(1))
    low, high = np.quantile(np.mean(drawn, axis=0), [0.025, 0.975])
    return 100 * float(np.mean(mean)), 100 * float(low), 100 * float(high)


def main(index: Annotated[Path, tyro.conf.Positional], reference: str = "pi_0") -> None:
    """Print a row for each run but the reference: ID, then the OOD average."""
    samples: dict[str, list[Sample]] = defaultdict(list)
    for run in read_index(index):
        samples[run.variant] += read_jsonl(Path(run.evaluate) / "samples.jsonl", Sample)
    shares = {variant: shares_right(of) for variant, of in samples.items()}
    rows = [["run", "ID, %", f"ID above {reference}", "OOD, %", f"OOD above {reference}"]]
    for variant, of in shares.items():
        cells = []
        for outside in (False, True):
            mine, its = (
                {
                    name: found
                    for name, found in each.items()
                    if is_out_of_distribution(name) is outside
                }
                for each in (of, shares[reference])
            )
            level = 100 * float(np.mean([np.mean([*each.values()]) for each in mine.values()]))
            gap, low, high = difference(mine, its)
            cells += [f"{level:.1f}", f"{gap:+.1f} [{low:+.1f}, {high:+.1f}]"]
        rows.append(
            [variant, *cells] if variant != reference else [variant, cells[0], "", cells[2], ""]
        )
    print(markdown_table(rows))


if __name__ == "__main__":
    tyro.cli(main)
