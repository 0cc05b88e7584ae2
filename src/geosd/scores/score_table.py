"""The score table: what every run of a study scored on every benchmark.

OOD averages are taken within a run and only then compared over runs, as in the paper (Table
main_id_ood): their spread over seeds is not that of four independent benchmarks.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from geosd.files import DamagedFileError, remake_file_hint
from geosd.problems.fresh_benchmarks import is_fresh, shown_name
from geosd.problems.grading import NOT_COMPARED
from geosd.problems.records import ID, Reason, SampleRecord
from geosd.scores.avg_and_pass_at_k import avg_at_k, mean_pass_at_k
from geosd.scores.consensus import consensus, false_consensus_rate, majority_accuracy
from geosd.scores.samples_by_problem import count_correct, group_by_benchmark
from geosd.scores.tidy import COLUMNS, RUN_COLUMNS, select_tidy_rows, tidy_values_by_seed

OOD_AVERAGE = "ood_avg"
POOL = "pool"
"""The word in place of a benchmark in rows about a run's solution pool."""
WITH_SOLUTION = "with_solution"
NOT_COMPARED_METRICS = {reason: reason.replace(" ", "_") for reason in NOT_COMPARED}
"""Reason of responses that were not compared -> metric of their share."""


@dataclass(frozen=True, order=True)
class ScoredRun:
    """A run that the score table has rows of: a trained and evaluated checkpoint.

    The variant "pi_0" is the base model itself. `draw` is the pretraining replicate of the base
    model that the run started from: it follows from the seed.
    """

    model: str
    variant: str
    seed: int
    draw: int = 0


def collect_scores(scored: Mapping[ScoredRun, pd.DataFrame]) -> pd.DataFrame:
    """The score table of a study from the scores of each run (`score_run`), in the order given.

    Raises:
        ValueError: There is no run, or runs of one model were examined on different benchmarks.
    """
    tables = []
    seen: dict[str, tuple[ScoredRun, list[str]]] = {}
    for run, table in scored.items():
        benchmarks = sorted(table["benchmark"].unique())
        first, expected = seen.setdefault(run.model, (run, benchmarks))
        if benchmarks != expected:
            raise ValueError(
                f"{run} has benchmarks {', '.join(benchmarks)}, but {first} has"
                f" {', '.join(expected)}. Their OOD averages cannot be compared.\n"
                "Hint: evaluate again the run whose samples are older than the test problems."
            )
        tables.append(table.assign(**asdict(run)))
    if not tables:
        raise ValueError("no runs to score.\nHint: does the study name models, methods and seeds?")
    return pd.concat(tables, ignore_index=True)[list(COLUMNS["scores"])]


def score_run(samples: Sequence[SampleRecord], pass_k: Sequence[int]) -> pd.DataFrame:
    """Score one run's samples: every metric on every benchmark, with the OOD average appended.

    The average leaves fresh benchmarks out, whose split is "fresh". `pass_k` are the k of the
    pass@k rows. The columns that name the run are left out.

    A benchmark of fewer samples a problem than some k has no row for it.

    Raises:
        ValueError: There are no samples.
    """
    rows = [
        (name, _split(name), *row)
        for name, members in group_by_benchmark(samples).items()
        for row in _benchmark(members, pass_k)
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS["scores"])[len(RUN_COLUMNS) :])
    ood = table[table["split"] == "OOD"]
    if ood.empty:
        return table
    # Samples per problem may differ between benchmarks. A mean over samples is then one of the
    # fewest; a pass@k that some benchmark lacks has no average.
    number = ood["k"].where(ood["metric"] == "pass@k", ood.groupby("metric")["k"].transform("min"))
    averages = ood.groupby(["metric", number], sort=False)["value"].agg(["mean", "size"])
    averages = averages[averages["size"] == ood["benchmark"].nunique()]["mean"].rename("value")
    average = averages.reset_index().assign(benchmark=OOD_AVERAGE, split="OOD")
    return pd.concat([table, average], ignore_index=True)


def _split(benchmark: str) -> str:
    """The word of the column `split`."""
    if benchmark == ID:
        return "ID"
    return "fresh" if is_fresh(benchmark) else "OOD"


def _benchmark(
    samples: Sequence[SampleRecord], pass_k: Sequence[int]
) -> list[tuple[str, int, float]]:
    """Rows (metric, k, value) of one benchmark."""
    counts, consensuses = count_correct(samples), consensus(samples)
    k = counts[0].n
    return [
        ("avg@k", k, 100 * avg_at_k(counts)),
        *(("pass@k", draw, 100 * mean_pass_at_k(counts, draw)) for draw in pass_k if draw <= k),
        ("maj@k", k, 100 * majority_accuracy(consensuses)),
        ("false_consensus", k, 100 * false_consensus_rate(consensuses)),
        *_shares(Counter("truncated" if s.finish == "length" else s.reason for s in samples), k),
        ("tokens", k, sum(s.tokens for s in samples) / len(samples)),
    ]


def _shares(reasons: Mapping[str | None, int], k: int) -> list[tuple[str, int, float]]:
    """Rows (metric, k, percent) of the responses that were not compared, by reason."""
    total = sum(reasons.values())
    return [
        (metric, k, 100 * reasons.get(reason, 0) / total)
        for reason, metric in NOT_COMPARED_METRICS.items()
    ]


@dataclass(frozen=True)
class _PoolCounts:
    """Counts of a pool's `counts.json` that are scored."""

    problems: int
    problems_trained_on: int
    rollouts_drawn: int
    rollouts_by_reason: dict[Reason, int]


def score_pool(file: Path) -> pd.DataFrame:
    """Rows of the score table about a solution pool, from its `counts.json`, without those columns.

    Raises:
        DamagedFileError: It holds no counts, or they contradict each other.
    """
    # A tenth of a second that programs without pools save.
    from pydantic import TypeAdapter, ValidationError

    try:
        counts = TypeAdapter(_PoolCounts).validate_json(file.read_bytes(), strict=True)
    except ValidationError as error:
        field, wrong = error.errors()[0]["loc"], error.errors()[0]["msg"]
        problem = f"{'.'.join(map(str, field)) or 'file'}: {wrong}"
        raise DamagedFileError(f"{file}: {problem}.\n{remake_file_hint(file)}") from error
    judged = sum(counts.rollouts_by_reason.values())
    trained, problems, drawn = counts.problems_trained_on, counts.problems, counts.rollouts_drawn
    if not 0 <= trained <= problems <= drawn or problems < 1 or judged != drawn:
        raise DamagedFileError(
            f"{file}: problems_trained_on is {trained} of {problems}, and {judged} of {drawn}"
            " rollouts have a reason; expected no more than all problems, and all rollouts.\n"
            f"{remake_file_hint(file)}"
        )
    k = drawn // problems
    solved = (WITH_SOLUTION, k, 100 * trained / problems)
    rows = [(POOL, "train", *row) for row in (solved, *_shares(counts.rollouts_by_reason, k))]
    return pd.DataFrame(rows, columns=list(COLUMNS["scores"])[len(RUN_COLUMNS) :])


def scores_by_seed(
    scores: pd.DataFrame,
    model: str,
    variant: str,
    benchmark: str,
    metric: str = "avg@k",
    k: int | None = None,
) -> pd.Series:
    """A variant's values in the score table, indexed by seed; empty where the study has none.

    Benchmark and metric are as in the table; without k, the largest of the metric is taken.
    """
    rows = select_tidy_rows(
        scores, model=model, variant=variant, benchmark=benchmark, metric=metric
    )
    return tidy_values_by_seed(select_tidy_rows(rows, k=rows["k"].max() if k is None else k))


def scored_ood_benchmarks(scores: pd.DataFrame, model: str) -> list[str]:
    """Names of a model's OOD benchmarks in the score table, in its order, without their average."""
    names = select_tidy_rows(scores, model=model, split="OOD")["benchmark"].unique()
    return [name for name in names if name != OOD_AVERAGE]


def fresh_scored(scores: pd.DataFrame, model: str) -> list[str]:
    """Names of a model's fresh benchmarks in the score table, in its order."""
    return [*select_tidy_rows(scores, model=model, split="fresh")["benchmark"].unique()]


def score_table_by_variant(scores: pd.DataFrame) -> dict[str, dict[str, dict[str, float]]]:
    """The score table in short: each variant's accuracy, ID and OOD, for `dvc metrics diff`.

    It is model -> variant -> name of the number -> percent, rounded to hundredths: `ID avg@k`,
    `ID pass@k`, `OOD avg@k` and `OOD pass@k`, and both of each fresh benchmark by its name; means
    over runs, with the largest k there is.
    """
    labels = {ID: "ID", OOD_AVERAGE: "OOD"}
    for name in select_tidy_rows(scores, split="fresh")["benchmark"].unique():
        labels[name] = shown_name(name)
    largest = {
        name: int(select_tidy_rows(scores, metric=name)["k"].max()) for name in ("avg@k", "pass@k")
    }
    numbers_by_run: dict[str, dict[str, dict[str, float]]] = {}
    for (model, variant), _ in scores.groupby(["model", "variant"], sort=False):
        numbers = {
            f"{label} {metric.replace('k', str(k))}": scores_by_seed(
                scores, str(model), str(variant), benchmark, metric, k
            ).mean()
            for benchmark, label in labels.items()
            for metric, k in largest.items()
        }
        numbers_by_run.setdefault(str(model), {})[str(variant)] = {
            name: round(float(number), 2) for name, number in numbers.items() if pd.notna(number)
        }
    return numbers_by_run


def score_table_replicates(rows: pd.DataFrame) -> pd.Series:
    """The pretraining replicate (column `draw`) that each seed of one model's rows starts from.

    Rows without the column are of one replicate, 0.
    """
    by_seed = rows.assign(draw=rows.get("draw", 0)).groupby("seed")["draw"]
    return by_seed.first().astype(int)
