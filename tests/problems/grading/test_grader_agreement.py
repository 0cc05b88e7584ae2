import importlib.util

import pytest

from geosd.problems.grading.exact_numbers import is_integer
from geosd.problems.grading.typed_grader import TypedGrader, grade_typed_response


@pytest.fixture(scope="module")
def agreement(root):
    spec = importlib.util.spec_from_file_location(
        "grader_agreement", root / "analysis/grader_agreement.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def graded(agreement, shared_data):
    rows = agreement.read(shared_data / "grading" / "graded_responses.jsonl")
    with TypedGrader() as pool:
        return agreement.grade_rows(rows, pool)


@pytest.mark.slow
def test_published_verdicts_agree_to_99_percent(graded):
    agree = sum(verdict.correct == row["correct"] for row, _, verdict in graded)
    assert agree / len(graded) >= 0.99
    assert not [row for row, _, verdict in graded if verdict.reason in ("timeout", "crash")]


@pytest.mark.slow
def test_every_disagreement_has_a_category_and_stands_in_the_document(agreement, graded, root):
    table = agreement.disagreements(graded)
    assert "unexplained" not in table
    assert table in (root / "analysis/grader_agreement.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_equivalence_pairs_that_fail_are_those_of_the_document(agreement, shared_data, root):
    rows = agreement.read(shared_data / "grading" / "equivalence_pairs.jsonl")
    with TypedGrader(seconds=30) as pool:
        pairs = agreement.grade_pairs(rows, pool)
    document = (root / "analysis/grader_agreement.md").read_text(encoding="utf-8")
    assert agreement.by_family(pairs) in document
    assert agreement.failures(pairs) in document


def test_every_gold_of_math_500_is_right_when_a_response_repeats_it(agreement, shared_data):
    golds = [row["answer"] for row in agreement.read(shared_data / "bench" / "math500.jsonl")]
    with TypedGrader(seconds=30) as pool:
        missed = [
            gold
            for gold in golds
            if not grade_typed_response(rf"Thus $x = \boxed{{{gold}}}$.", gold, pool).correct
        ]
    assert (len(golds), missed) == (500, [])


@pytest.mark.parametrize("benchmark", ["aime24", "aime25", "amc23"])
def test_every_gold_of_the_contests_is_an_integer(agreement, shared_data, benchmark):
    rows = agreement.read(shared_data / "bench" / f"{benchmark}.jsonl")
    assert rows and all(is_integer(row["answer"]) for row in rows)
