"""What study paper_lean costs and loses: samples by benchmark, and seeds in stages.

    python analysis/lean_design.py

Prints the tables that lean_design.md reads: the allocation of samples, and the interval that it
costs; power, errors and seeds of simulated studies with the paper's effects and without any; and
the design replayed over the shipped runs of the miniature and of the dial, row by row.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from geosd.claims.evidence import Evidence
from geosd.claims.finding import WORDS, Finding
from geosd.claims.judging import judge_claims
from geosd.claims.ledger import ledger
from geosd.claims.published import published
from geosd.claims.staged import judge_in_stages
from geosd.claims.staged_power import CLAIMS, StagedPowerAccuracies, simulate_staged_power
from geosd.cli.claims import _evidence_of
from geosd.config import load, resolve_study, settings
from geosd.scores.allocation import (
    FEWEST,
    AllocatedBenchmark,
    neyman,
    sampling_variance,
    variance_for_allocation,
)
from geosd.scores.score_table import OOD_AVERAGE, score_table_replicates, scores_by_seed
from geosd.scores.statistics import student_effect_interval

ROOT = Path(__file__).resolve().parents[1]
STUDIES, SEED = 10_000, 0
STAGES = (3, 6, 10)
FULL = 16
SIZES = {"aime24": 30, "aime25": 30, "amc23": 40, "math500": 500}
ID_PROBLEMS = 500
RESPONSES = 4000
"""Of an evaluation on the OOD benchmarks: a run's OOD average then spreads as with 16 of each."""
OOD_PROBLEMS_THERE, ID_PROBLEMS_THERE = 50, 100
DIAL = (0, 25, 50, 75, 100)
RATE = "-learning_rate_1e-05"


def scores_of(study: str) -> pd.DataFrame:
    """The shipped scores of a study."""
    folder = ROOT / "figures" / study / "source"
    [file] = folder.glob("scores.csv*")
    return pd.read_csv(file)


def shares_within(scores: pd.DataFrame) -> pd.Series:
    """Benchmark -> the share of p (1 - p) of its mean accuracy that lies within problems."""
    rows = scores[scores["variant"].isin(["pi_0", "geosd"])]
    means = rows.groupby(["metric", "k", "benchmark"])["value"].mean() / 100
    avg, pass_2 = means["avg@k"].droplevel("k"), means["pass@k"][2]
    within = {name: variance_for_allocation(avg[name], pass_2[name]) for name in avg.index}
    return pd.Series({name: within[name] / (avg[name] * (1 - avg[name])) for name in within})


def paper_benchmarks(share: float) -> dict[str, AllocatedBenchmark]:
    """The paper's benchmarks, by its accuracies of pi_0 and GeoSD and a shipped share within."""
    families = published()["ood_per_bench"]["families"].values()
    found = {}
    for name, problems in SIZES.items():
        cells = [
            family[method][name][0] / 100 for family in families for method in ("pi_0", "geosd")
        ]
        found[name] = AllocatedBenchmark(
            problems, share * float(np.mean([p * (1 - p) for p in cells]))
        )
    return found


def id_problems(share: float) -> AllocatedBenchmark:
    """The paper's ID problems, likewise."""
    families = published()["main_id_ood"]["families"].values()
    cells = [family[method]["id"][0] / 100 for family in families for method in ("pi_0", "geosd")]
    return AllocatedBenchmark(ID_PROBLEMS, share * float(np.mean([p * (1 - p) for p in cells])))


def allocation_table(share: float) -> tuple[pd.DataFrame, float]:
    """Samples by benchmark, and the variance that they add to a run's OOD average."""
    benchmarks = paper_benchmarks(share)
    lean = neyman(benchmarks, RESPONSES)
    full = dict.fromkeys(SIZES, FULL)
    added = sampling_variance(benchmarks, lean) - sampling_variance(benchmarks, full)
    groups = {name: {name: one} for name, one in benchmarks.items()}
    groups |= {"OOD average": benchmarks, "id": {"id": id_problems(share)}}
    rows = []
    for name, members in groups.items():
        alone = members.get(name)
        drawn = [dict.fromkeys(members, FULL), {**lean, "id": FEWEST}]
        errors = [sampling_variance(members, samples) ** 0.5 for samples in drawn]
        numbers = [samples[name] if alone else "" for samples in drawn]
        size, within = (alone.problems, f"{alone.within:.3f}") if alone else ("", "")
        rows.append((name, size, within, *numbers, *(f"{error:.2f}" for error in errors)))
    columns = ["benchmark", "problems", "p (1 - p) within", "samples, paper", "samples, lean"]
    return pd.DataFrame(rows, columns=[*columns, "error, paper", "error, lean"]), added


def interval_table(samples: int) -> pd.DataFrame:
    """GeoSD less FwdKL on the miniature: the interval with all samples, and with fewer of each."""
    whole = scores_of("miniature")
    rows = []
    for model in whole["model"].unique():
        for benchmark in ("id", OOD_AVERAGE):
            words = []
            for scores in (whole, with_fewer_samples(whole, samples)):
                geosd, fwdkl = (
                    scores_by_seed(scores, model, method, benchmark)
                    for method in ("geosd", "fwdkl")
                )
                draws = score_table_replicates(scores[scores["model"] == model])
                found = student_effect_interval([(geosd - fwdkl, draws)])
                words.append(f"{found.difference:+.1f} [{found.low:+.1f}, {found.high:+.1f}]")
            rows.append((model, benchmark, *words))
    return pd.DataFrame(
        rows, columns=["model", "benchmark", f"{FULL} samples", f"{samples} samples"]
    )


def simulation_table(added: float) -> pd.DataFrame:
    """Power, errors and seeds of the three primary claims, of the whole design and of the lean."""
    truth, rows = StagedPowerAccuracies.published(), []
    for design, stages, variance in (("paper", (STAGES[-1],), 0.0), ("lean", STAGES, added)):
        for effect, accuracies in (("the paper's", truth), ("none", truth.without_effect())):
            generator = np.random.default_rng(SEED)
            found = simulate_staged_power(
                accuracies.with_variance(variance), stages, STUDIES, generator
            )
            for claim in CLAIMS:
                rows.append(
                    {
                        "design": design,
                        "effect": effect,
                        "claim": claim,
                        "rows that agree": f"{found.power(claim):.3f}",
                        "studies with a word": f"{found.wrong(claim):.4f}",
                        "seeds, mean": f"{found.seeds.mean():.2f}",
                    }
                )
    return pd.DataFrame(rows)


def replayed(
    evidence: Evidence, models: Sequence[str], stages: Sequence[int]
) -> Iterator[tuple[Finding, Finding]]:
    """Each exercised row of the ledger: judged once with all seeds, and in stages."""
    whole = judge_claims(ledger(), evidence, models)
    for number, row in enumerate(judge_in_stages(ledger(), evidence, stages, len(models), models)):
        if whole[number].exercised and not whole[number].claim.computed:
            yield whole[number], row


def with_fewer_samples(scores: pd.DataFrame, samples: int) -> pd.DataFrame:
    """Scores as of fewer samples: noise of the variance that they would add, seeded.

    Responses are not shipped; their variance within problems is, as pass@2 less avg@k.
    """
    generator = np.random.default_rng(SEED)
    keys = ["model", "variant", "seed", "benchmark"]
    table = scores.set_index([*keys, "metric", "k"])["value"].sort_index()
    avg = scores[scores["metric"] == "avg@k"].copy()
    first = avg[avg["benchmark"] != OOD_AVERAGE].copy()
    for place, row in first.iterrows():
        of_run = tuple(row[keys])
        within = variance_for_allocation(row["value"] / 100, table[(*of_run, "pass@k", 2)] / 100)
        problems = ID_PROBLEMS_THERE if row["benchmark"] == "id" else OOD_PROBLEMS_THERE
        variance = 1e4 * within * (1 / samples - 1 / FULL) / problems
        first.loc[place, "value"] += generator.normal() * variance**0.5
    runs = ["model", "variant", "seed"]
    ood = first[first["split"] == "OOD"].groupby(runs)["value"].mean()
    average = avg[avg["benchmark"] == OOD_AVERAGE].copy()
    average["value"] = [ood[tuple(row)] for row in average[runs].itertuples(index=False)]
    others = scores[scores["metric"] != "avg@k"]
    return pd.concat([first, average, others], ignore_index=True)


def of_shipped(study: str, tables: Mapping[str, pd.DataFrame]) -> Evidence:
    """The evidence of a study of params.yaml with these tables."""
    resolved = resolve_study(load(ROOT / "params.yaml"), study)
    return _evidence_of(tables, settings("claims", resolved))


def replays(samples: int) -> Iterator[tuple[str, Evidence, Evidence, Sequence[str], Sequence[int]]]:
    """Name, whole and lean evidence, models and stages of each replay."""
    source = ROOT / "figures/miniature/source"
    tables = {
        name: pd.read_csv(next(source.glob(f"{name}.csv*")))
        for name in ("scores", "drift", "consensus")
    }
    whole = of_shipped("miniature", tables)
    lean = replace(whole, scores=with_fewer_samples(tables["scores"], samples))
    yield "miniature", whole, lean, list(tables["scores"]["model"].unique()), (3, 6, 12)
    for conflict in DIAL:
        scores = scores_of(f"miniature_transfer_{conflict}")
        kept = scores["variant"].str.endswith(RATE) | (scores["variant"] == "pi_0")
        scores = scores[kept].assign(variant=scores["variant"].str.removesuffix(RATE))
        rates = {"mini-qwen3": dict.fromkeys(("fwdkl", "geosd"), 1e-5)}
        whole = Evidence(scores=scores, rates=rates)
        lean = replace(whole, scores=with_fewer_samples(scores, samples))
        yield f"dial {conflict / 100:g}", whole, lean, ["mini-qwen3"], (3, 6)


def replay_tables(samples: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """How many rows have the same word, and each that has another."""
    counts, others = [], []
    for name, whole, lean, models, stages in replays(samples):
        same = total = 0
        once = [row for row, _ in replayed(whole, models, stages)]
        staged = [row for _, row in replayed(lean, models, stages)]
        seeds = []
        for before, after in zip(once, staged, strict=True):
            total += 1
            same += before.word == after.word
            opposite = {before.word, after.word} == {WORDS[0], WORDS[1]}
            if before.word != after.word:
                others.append(
                    (name, before.claim.id, before.model, before.word, after.word, opposite)
                )
            early = [n for n in stages if f"decided at {n} of" in after.note]
            seeds += early or [stages[-1]]
        counts.append((name, len(once), same, f"{np.mean(seeds):.1f} of {stages[-1]}"))
    return (
        pd.DataFrame(
            counts, columns=["runs", "rows", "same word", "seeds until a row's word, mean"]
        ),
        pd.DataFrame(others, columns=["runs", "claim", "model", "whole", "lean", "reversed"]),
    )


def main() -> None:
    """Print the tables."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    shares = {name: shares_within(scores_of(name)) for name in ("miniature", "miniature_wide_0")}
    for name, of_study in shares.items():
        print(f"share within problems, {name}: {of_study.min():.2f} to {of_study.max():.2f}")
    share = max(of_study.max() for of_study in shares.values())
    table, added = allocation_table(share)
    print(table.to_markdown(index=False, disable_numparse=True), "\n")
    deviations = StagedPowerAccuracies.published().sd
    worse = np.sqrt((deviations**2 + added) / deviations**2)
    print(f"variance of a run's OOD average: {added:+.3f} points squared")
    print(f"its deviation, times: {worse.min():.3f} to {worse.max():.3f}\n")
    print(interval_table(FEWEST).to_markdown(index=False), "\n")
    print(simulation_table(added).to_markdown(index=False, disable_numparse=True), "\n")
    counts, others = replay_tables(FEWEST)
    print(counts.to_markdown(index=False), "\n")
    print(others.to_markdown(index=False))


if __name__ == "__main__":
    main()
