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
    right: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for sample in samples:
        right[sample.benchmark, sample.problem_id].append(sample.correct)
    shares: dict[str, dict[str, float]] = defaultdict(dict)
    for benchmark, problem in sorted(right):
        shares[benchmark][problem] = float(np.mean(right[benchmark, problem]))
    return dict(shares)


def difference(
    a: Mapping[str, Mapping[str, float]], b: Mapping[str, Mapping[str, float]], seed: int = 0
) -> tuple[float, float, float]:
    """The mean over benchmarks of a - b, in points, and the ends of its interval.

    Raises:
        ValueError: The two have other problems.
    """
    if _problems(a) != _problems(b):
        raise ValueError("the two runs have other problems.\nHint: compare runs of one study.")
    draw = np.random.default_rng(seed)
    means, resampled = [], []
    for name in a:
        gaps = np.array(list(a[name].values())) - np.array(list(b[name].values()))
        drawn = draw.integers(len(gaps), size=(RESAMPLES, len(gaps)))
        means.append(gaps.mean())
        resampled.append(gaps[drawn].mean(1))
    low, high = np.quantile(np.mean(resampled, axis=0), [0.025, 0.975])
    return 100 * float(np.mean(means)), 100 * float(low), 100 * float(high)


def _problems(shares: Mapping[str, Mapping[str, float]]) -> dict[str, list[str]]:
    return {benchmark: list(problems) for benchmark, problems in shares.items()}


def main(index: Annotated[Path, tyro.conf.Positional], reference: str = "pi_0") -> None:
    """Print a row for each run but the reference: ID, then the OOD average."""
    samples: dict[str, list[Sample]] = defaultdict(list)
    for run in read_index(index):
        samples[run.variant] += read_jsonl(Path(run.evaluate) / "samples.jsonl", Sample)
    shares = {variant: shares_right(of_run) for variant, of_run in samples.items()}
    rows = [["run", "ID, %", f"ID above {reference}", "OOD, %", f"OOD above {reference}"]]
    for variant in shares:
        row = [variant]
        for outside in (False, True):
            own = _benchmarks(shares[variant], outside)
            base = _benchmarks(shares[reference], outside)
            means = [np.mean(list(problems.values())) for problems in own.values()]
            gap, low, high = difference(own, base)
            above = "" if variant == reference else f"{gap:+.1f} [{low:+.1f}, {high:+.1f}]"
            row += [f"{100 * float(np.mean(means)):.1f}", above]
        rows.append(row)
    print(markdown_table(rows))


def _benchmarks(
    shares: Mapping[str, Mapping[str, float]], outside: bool
) -> dict[str, Mapping[str, float]]:
    """The OOD benchmarks, or the others."""
    return {name: of for name, of in shares.items() if is_out_of_distribution(name) is outside}


if __name__ == "__main__":
    tyro.cli(main)
