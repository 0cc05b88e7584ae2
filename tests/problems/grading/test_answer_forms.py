"""The program that counts the forms of answers, on rows of its own."""

import importlib.util
import json
import sys

import pytest


@pytest.fixture(scope="module")
def forms(root):
    spec = importlib.util.spec_from_file_location("answer_forms", root / "analysis/answer_forms.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks its module up
    spec.loader.exec_module(module)
    return module


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_responses_and_right_answers_of_a_form_are_counted_with_their_verdicts(forms, tmp_path):
    responses = [
        {"gold": "2,7", "response": r"\boxed{7, 2}", "correct": True},
        {"gold": "2,7", "response": r"\boxed{(2,7)}", "correct": True},
        {"gold": "2,7", "response": None, "pred": "1,2", "correct": False},
        {"gold": "7", "response": "<answer>7</answer>"},
        {"gold": "7", "response": r"\boxed{\sqrt{2}+7-\sqrt{2}}", "correct": True},
        {"gold": "70", "response": "Answer: 7e1", "correct": False},
    ]
    golds = [{"answer": r"\text{A, C}"}, {"answer": "1+1=2\n#### 2"}, {"answer": r"\varnothing"}]
    table = forms.main(
        write(tmp_path / "responses.jsonl", responses), write(tmp_path / "golds.jsonl", golds)
    )
    assert table.startswith("6 responses, 6 with an answer; 3 right answers of problems.")
    for row in (
        "| list or set | 1 | 2 | 1 | 0 |",
        "| tuple | 0 | 1 | 0 | 1 |",
        "| letters of options | 1 | 0 | 0 | 0 |",
        "| empty set, in signs or words | 1 | 0 | 0 | 0 |",
        "| power of ten with e | 0 | 1 | 1 | 0 |",
        "| answer between tags | – | 1 | 1 | 0 |",
        "| tuple for a list | – | 1 | 0 | 1 |",
        "| formula for an integer | – | 1 | 0 | 1 |",
    ):
        assert row in table.splitlines()
