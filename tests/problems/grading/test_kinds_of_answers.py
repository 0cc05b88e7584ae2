"""Each row of kinds_of_answers.yaml, judged as the response of a model."""

from pathlib import Path

import pytest
import yaml

from geosd.problems.grading.typed_grader import grade_typed_answer, grade_typed_response

TABLE = yaml.safe_load(Path(__file__).with_name("kinds_of_answers.yaml").read_text("utf-8"))
RESPONSES = {"boxed": r"It is $\boxed{%s}$.", "written": "%s"}
ROWS = [
    pytest.param(gold, RESPONSES[place] % said, verdict == "right", id=f"{kind}: {said}, {gold}")
    for place, kinds in TABLE.items()
    for kind, verdicts in kinds.items()
    for verdict, rows in verdicts.items()
    for gold, said in rows
]


@pytest.mark.parametrize(("gold", "response", "right"), ROWS)
def test_a_kind_of_answers(pool, gold, response, right):
    assert grade_typed_response(response, gold, pool).correct == right


def test_each_kind_has_controls_and_each_verdict_is_one_of_two():
    for kinds in TABLE.values():
        for kind, verdicts in kinds.items():
            assert verdicts.keys() == {"right", "wrong"}, kind


def test_lists_of_numbers_start_no_process():
    class Untouchable:
        def compare(self, gold, answer):
            raise AssertionError(f"compares {gold} with {answer}")

    for answer, right in (("7, 2", True), (r"\{2, 7\}", True), ("2, 8", False), ("(2, 7)", False)):
        assert grade_typed_answer(answer, "2,7", Untouchable()).correct == right
