"""avg@10 and maj@10 of a public sample file, against what is published about it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from geosd.problems.records import SampleRecord
from geosd.scores.avg_and_pass_at_k import avg_at_k, mean_pass_at_k
from geosd.scores.consensus import consensus, majority_accuracy
from geosd.scores.samples_by_problem import count_correct

SHARED = Path(os.environ.get("GEOSD_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILE = SHARED / "samples" / "gsm8k_qwen25_1p5b_10x3temps.jsonl"

pytestmark = pytest.mark.skipif(not FILE.exists(), reason=f"public samples are absent: {FILE}")


def at(temperature: float) -> list[SampleRecord]:
    samples = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["temperature"] == temperature:
            pairs = zip(row["answers"], row["correct"], strict=True)
            samples += [
                SampleRecord("gsm8k", row["problem_id"], i, "", 1, answer, correct, "stop")
                for i, (answer, correct) in enumerate(pairs)
            ]
    return samples


# The file's notes: avg@10 and maj@10 from its extracted answers, ties to the first seen.
@pytest.mark.parametrize(
    ("temperature", "average", "majority"),
    [(0.5, 66.8, 76.4), (0.7, 65.1, 78.5), (1.0, 63.4, 78.5)],
)
def test_avg_and_maj_agree_with_the_published_values(temperature, average, majority):
    samples = at(temperature)
    assert len(samples) == 1910
    assert round(100 * avg_at_k(count_correct(samples)), 1) == average
    assert round(100 * majority_accuracy(consensus(samples)), 1) == majority


def test_pass_at_k_rises_from_the_average_to_any_of_ten():
    samples = at(1.0)
    counts = count_correct(samples)
    curve = [mean_pass_at_k(counts, k) for k in (1, 2, 5, 10)]
    assert curve == sorted(curve)
    assert curve[0] == pytest.approx(avg_at_k(counts))
    assert curve[-1] == sum(t.c > 0 for t in counts) / len(counts)
