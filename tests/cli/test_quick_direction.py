"""Study quick, at the miniature's conflict, moves accuracy as study miniature did.

It starts from the shipped base model. Quick has 100 steps and a rate of its own, so sizes differ.
The miniature's gains are those that figures/miniature ships; each is compared whose interval over
draws excludes 0. RevKL and GeoSD are the two that move both accuracies there, and half of the
samples show it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import t

from geosd.cli import base, data, evaluate, pool, train
from geosd.json_lines import read_jsonl
from geosd.problems.records import ID, SampleRecord

ROOT = Path(__file__).parents[2]
MODEL = "mini-qwen3"
METHODS = ("revkl", "geosd")


def miniature_intervals() -> dict[tuple[str, bool], tuple[float, float]]:
    """95 % interval of each method's gain in the miniature by draws, in distribution and out."""
    scores = pd.read_csv(ROOT / "figures/miniature/source/scores.csv.gz")
    rows = scores[(scores["model"] == MODEL) & (scores["metric"] == "avg@k")]
    means = rows.groupby(["benchmark", "variant", "draw"])["value"].mean()
    intervals = {}
    for benchmark, inside in (("id", True), ("ood_avg", False)):
        for method in METHODS:
            gains = means[benchmark, method] - means[benchmark, "pi_0"]
            reach = t.ppf(0.975, len(gains) - 1) * gains.sem()
            intervals[method, inside] = gains.mean() - reach, gains.mean() + reach
    return intervals


def accuracies(samples: Path) -> dict[bool, float]:
    """Accuracy in percent, in distribution (True) and the mean of the other benchmarks."""
    right = pd.DataFrame(vars(sample) for sample in read_jsonl(samples, SampleRecord))
    means = 100 * right.groupby("benchmark")["correct"].mean()
    return {True: means[ID], False: means.drop(ID).mean()}


@pytest.fixture(scope="module")
def gains(tmp_path_factory) -> dict[tuple[str, bool], float]:
    """Gains over pi_0 of the first seed of study quick, in points."""
    folder = tmp_path_factory.mktemp("quick")
    values = yaml.safe_load((ROOT / "params.yaml").read_text())
    values["studies"]["quick"]["data"]["conflict"] = 1.0
    values["studies"]["quick"]["evaluation"] |= {"samples": 8, "pass_k": [1, 8]}
    # What is measured on the way moves no weight.
    values["studies"]["quick"]["training"] |= {"diagnose_every": 100, "final_rollouts": 1}
    (folder / "params.yaml").write_text(yaml.safe_dump(values))
    shared = {"study": "quick", "params": folder / "params.yaml"}
    problems = folder / "data/train.jsonl"
    data.main(out=folder / "data", **shared)
    base.main(model=MODEL, out=folder / "base", scratch=folder / "scratch", **shared)
    pool.main(
        model=MODEL,
        base=folder / "base",
        problems=problems,
        out=folder / "pool",
        scratch=folder / "scratch",
        **shared,
    )

    def sampled(variant: str, checkpoint: Path) -> dict[bool, float]:
        evaluate.main(
            model=MODEL,
            variant=variant,
            seed=0,
            checkpoint=checkpoint,
            problems=folder / "data/test.jsonl",
            out=folder / variant / "samples",
            scratch=folder / variant / "scratch",
            **shared,
        )
        return accuracies(folder / variant / "samples/samples.jsonl")

    before, found = sampled("pi_0", folder / "base"), {}
    for variant in METHODS:
        train.main(
            model=MODEL,
            variant=variant,
            seed=0,
            base=folder / "base",
            problems=problems,
            pool=folder / "pool/pool.jsonl",
            out=folder / variant / "weights",
            scratch=folder / variant / "scratch",
            **shared,
        )
        after = sampled(variant, folder / variant / "weights")
        found |= {(variant, inside): after[inside] - before[inside] for inside in before}
    return found


@pytest.mark.slow
def test_quick_has_the_signs_of_the_miniature(gains):
    intervals = miniature_intervals()
    signs = {key: np.sign(low) for key, (low, high) in intervals.items() if low * high > 0}
    assert len(signs) >= 4, "the miniature moves something"
    assert {key: np.sign(gains[key]) for key in signs} == signs
