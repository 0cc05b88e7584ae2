"""The samples of every run: reading and checking them, the right ones, the habits in them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from geosd.files import DamagedFileError, remake_file_hint
from geosd.json_lines import DamagedLineError, read_jsonl
from geosd.problems.fresh_benchmarks import in_ood_average
from geosd.problems.records import SampleRecord
from geosd.problems.search.habits import HABITS, habit_shares
from geosd.scores.samples_by_problem import count_correct, group_by_benchmark
from geosd.scores.score_table import OOD_AVERAGE, ScoredRun


def sample_share_rows(samples: Sequence[SampleRecord]) -> list[tuple[str, str, int, float]]:
    """A run's rows of the table of shares: benchmark, problem, samples, share of right ones.

    Raises:
        UnevenSamplesError: Problems do not all have the same number of samples.
    """
    return [(of.benchmark, of.problem_id, of.n, of.c / of.n) for of in count_correct(samples)]


def sample_habit_rows(samples: Sequence[SampleRecord]) -> list[tuple[str, str, float]]:
    """A run's rows of the table of habits: benchmark, habit, value; then the OOD benchmarks' means.

    A habit without occasion has no row, nor a mean where a benchmark lacks its row.
    """
    shares = {name: habit_shares(of) for name, of in group_by_benchmark(samples).items()}
    outside = [of_name for name, of_name in shares.items() if in_ood_average(name)]
    if outside:
        shares[OOD_AVERAGE] = {}
        for habit in HABITS:
            values = [of_name[habit] for of_name in outside if habit in of_name]
            if len(values) == len(outside):
                shares[OOD_AVERAGE][habit] = fmean(values)
    rows = []
    for name, of_name in shares.items():
        rows += [(name, habit, value) for habit, value in of_name.items()]
    return rows


def read_sample_table(run: ScoredRun, file: Path) -> list[SampleRecord]:
    """Read the samples that a run's scores are computed from, `samples.jsonl`.

    Raises:
        FileNotFoundError: There is no such file.
        DamagedFileError: It is empty, or a line is no sample, or not the next one of its problem.
    """
    if not file.exists():
        raise FileNotFoundError(
            f"{file}: no samples of {run.variant}, seed {run.seed}, on {run.model}.\n"
            "Hint: let the workflow evaluate every run of the study before it analyses them."
        )
    samples = read_jsonl(file, SampleRecord)
    seen: Counter[tuple[str, str]] = Counter()  # how many samples of each problem came before
    for line, one in enumerate(samples, start=1):
        number = seen[one.benchmark, one.problem_id]
        seen[one.benchmark, one.problem_id] += 1
        if one.sample != number:
            problem = f"sample is {one.sample}; expected {number} of {one.problem_id}"
        elif one.tokens < 0:
            problem = f"tokens is {one.tokens}; expected 0 or more"
        elif one.reason is not None and one.correct != (one.reason == "correct"):
            problem = f"correct is {one.correct}; expected what reason says, {one.reason!r}"
        elif one.finish == "length" and (one.correct or one.answer is not None):
            problem = f"answer is {one.answer!r}; expected none of a truncated response"
        else:
            continue
        raise DamagedLineError(f"{file}:{line}: {problem}.\n{remake_file_hint(file)}")
    if not samples:
        raise DamagedFileError(f"{file}: holds no sample.\n{remake_file_hint(file)}")
    return samples


def check_sample_problems(sizes: Mapping[Path, Counter[tuple[str, str]]]) -> None:
    """Check that runs of one model have the same problems with as many samples each.

    `sizes` says of each run's file how many samples each (benchmark, problem_id) has.

    Raises:
        DamagedFileError: Names a file that lacks samples which another one has.
    """
    everything: Counter[tuple[str, str]] = Counter()
    for own in sizes.values():
        everything |= own
    for file, own in sizes.items():
        lacking = everything - own
        if lacking:
            (benchmark, problem), number = next(iter(lacking.items()))
            raise DamagedFileError(
                f"{file}: lacks {lacking.total()} samples that other runs have, the first"
                f" {number} of {problem} of {benchmark}; expected the same of all runs.\n"
                f"{remake_file_hint(file)}"
            )
