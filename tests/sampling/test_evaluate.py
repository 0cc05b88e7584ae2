"""Evaluation keeps every sample, in the problems' order, the same ones for the same seed."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from geosd.evaluation.benchmarks import sample_benchmarks
from geosd.json_lines import read_jsonl, write_jsonl
from geosd.problems.encoding import Encoding
from geosd.problems.grading import GradingVerdict
from geosd.problems.grading.typed_grader import TypedGrader
from geosd.problems.miniature import MiniatureGrader, MiniaturePrompts
from geosd.problems.records import Problem, SampleRecord
from geosd.sampling.graded_sampler import GradedSampler
from geosd.sampling.kept_samples import KeptSamples
from geosd.sampling.sampler import Completion, SamplingParams
from geosd.scores.avg_and_pass_at_k import avg_at_k
from geosd.scores.consensus import consensus
from geosd.scores.samples_by_problem import count_correct
from geosd.seeds import seed_of

DECODING = SamplingParams(0.6, 0.95, 8)


class Letters:
    """A tokenizer of single characters."""

    eos_token_id, pad_token_id = 3, 0

    def __call__(self, text, add_special_tokens):
        assert not add_special_tokens
        return type("Encoded", (), {"input_ids": [ord(c) for c in text]})

    def decode(self, ids, skip_special_tokens):
        assert skip_special_tokens
        return "".join(chr(i) for i in ids if i != self.eos_token_id)


GRADER = MiniatureGrader()
ENCODING = Encoding(Letters(), MiniaturePrompts())


class Dice:
    """Answers every prompt with a digit drawn from the seed and the prompt's place."""

    def __init__(self):
        self.calls = []

    def sample(self, prompts, decoding, seed):
        self.calls.append((["".join(map(chr, p)) for p in prompts], decoding, seed))
        digits = [seed_of(seed, place) % 3 for place in range(len(prompts))]
        texts = [f"A: {digit}" if digit else "stuck" for digit in digits]
        return [
            Completion((*map(ord, text), 3), "stop")
            if text != "stuck"
            else Completion(tuple(map(ord, text)), "length")
            for text in texts
        ]

    chunk = 1

    def sample_chunks(self, batches, decoding, finished=()):
        first = 0
        for batch in batches:
            yield dict(enumerate(self.sample(batch.prompts, decoding, batch.seed), first))
            first += len(batch.prompts)

    def record(self):
        return {}


PROBLEMS = [
    Problem("p1", "id", "1 + 0", "1"),
    Problem("p2", "long", "1 + 1", "2"),
    Problem("p3", "id", "2 + 0", "2"),
]


def run(seed=0, problems=PROBLEMS, sampler=None, grade=GRADER, coverage=4, allocation=None):
    with TemporaryDirectory() as scratch:
        kept = KeptSamples(Path(scratch), "a job")
        graded = GradedSampler(sampler or Dice(), ENCODING, grade, kept)
        return sample_benchmarks(graded, problems, 4, coverage, DECODING, seed, allocation)


def test_a_sample_in_a_thought_that_the_prompt_opened_is_judged_as_one(monkeypatch):
    monkeypatch.setattr(ENCODING, "opens_thought", True)
    assert {row.reason for row in run(grade=TypedGrader())} == {"no answer", "truncated"}


def test_rows_follow_the_problems_and_number_their_samples():
    rows = run()
    assert [(r.problem_id, r.sample) for r in rows] == [
        (p.id, i) for p in PROBLEMS for i in range(4)
    ]
    assert {r.benchmark for r in rows if r.problem_id == "p2"} == {"long"}


def test_further_samples_of_ood_problems_leave_the_first_ones_as_they_were():
    rows = run(coverage=6)
    assert [row for row in rows if row.sample < 4] == run()
    further = [row for row in rows if row.sample >= 4]
    assert [(r.problem_id, r.sample) for r in further] == [("p2", 4), ("p2", 5)]
    assert [r.sample for r in rows if r.problem_id == "p2"] == list(range(6))


def test_a_benchmark_with_a_number_of_its_own_has_so_many_samples_and_the_others_theirs():
    rows = run(coverage=6, allocation={"long": 3})
    assert [r.sample for r in rows if r.problem_id == "p2"] == list(range(3))
    assert [row for row in rows if row.benchmark == "id"] == [
        row for row in run(coverage=6) if row.benchmark == "id"
    ]
    more = run(allocation={"id": 9})
    assert [r.sample for r in more if r.problem_id == "p1"] == list(range(9))


def test_the_students_prompt_has_no_solution_and_each_benchmark_has_its_seed():
    dice = Dice()
    run(seed=7, sampler=dice)
    [(prompts, decoding, first), (_, _, second)] = dice.calls
    assert prompts == ["Q: 1 + 0 S:"] * 4 + ["Q: 2 + 0 S:"] * 4
    assert decoding == DECODING
    assert (first, second) == (seed_of(7, "evaluate", "id"), seed_of(7, "evaluate", "long"))


def test_verdict_tokens_and_finish_are_recorded():
    for row in run():
        gold = {p.id: p.answer for p in PROBLEMS}[row.problem_id]
        if row.finish == "length":
            assert (row.answer, row.correct, row.tokens) == (None, False, len("stuck"))
            assert row.reason == "truncated"
        else:
            assert row.text == f"A: {row.answer}"
            assert row.correct is (row.answer == gold)
            assert row.tokens == len(row.text) + 1  # end of sequence included


def test_a_truncated_response_has_no_answer_whatever_it_says():
    class Cut(Dice):
        """Every response states the right answer of the first problem and meets the cap."""

        def sample(self, prompts, decoding, seed):
            return [Completion(tuple(map(ord, "A: 1")), "length") for _ in prompts]

    rows = run(sampler=Cut())
    found = {(row.answer, row.correct, row.reason, row.text) for row in rows}
    assert found == {(None, False, "truncated", "A: 1")}
    assert avg_at_k(count_correct(rows)) == 0
    assert {(one.majority, one.strength) for one in consensus(rows)} == {(None, 0.0)}


def test_the_same_seed_writes_the_same_bytes_and_another_seed_others(tmp_path):
    files = [tmp_path / f"{i}.jsonl" for i in range(3)]
    for file, seed in zip(files, (0, 0, 1), strict=True):
        write_jsonl(file, run(seed))
    first, again, other = (file.read_bytes() for file in files)
    assert first == again != other
    assert read_jsonl(files[0], SampleRecord) == run(0)


def test_another_benchmark_leaves_the_samples_of_the_first_as_they_were():
    alone = run(problems=[p for p in PROBLEMS if p.benchmark == "id"])
    assert alone == [row for row in run() if row.benchmark == "id"]


def test_why_a_verdict_could_not_be_reached_is_kept(tmp_path):
    rows = run(grade=lambda response, gold: GradingVerdict("7", False, "timeout"))
    write_jsonl(tmp_path / "samples.jsonl", rows)
    kept = read_jsonl(tmp_path / "samples.jsonl", SampleRecord)
    found = {(row.answer, row.correct, row.reason) for row in kept if row.finish == "stop"}
    assert found == {("7", False, "timeout")}


def test_samples_from_before_reasons_were_kept_are_read(tmp_path):
    write_jsonl(tmp_path / "samples.jsonl", run())
    text = (tmp_path / "samples.jsonl").read_text()
    (tmp_path / "old.jsonl").write_text(re.sub(r', "reason": "[a-z ]*"', "", text))
    old = read_jsonl(tmp_path / "old.jsonl", SampleRecord)
    assert len(old) == 12 and {row.reason for row in old} == {None}
