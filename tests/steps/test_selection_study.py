"""A selection trains and judges on problems that no other study touches."""

from geosd.files import read_jsonl
from geosd.problems.records import Problem
from geosd.steps import base, data


def test_a_selection_swaps_in_its_own_problems(small, tmp_path):
    data.main(out=tmp_path, study="quick_selection", params=small.shared["params"])
    mine = {name: read_jsonl(tmp_path / f"{name}.jsonl", Problem) for name in ("train", "test")}
    select = read_jsonl(small.folder / "data/select.jsonl", Problem)
    assert mine["train"] == [p for p in select if p.benchmark == "select_train"]
    assert mine["test"] == [p for p in select if p.benchmark == "select_validation"]
    theirs = [
        problem.question
        for name in ("train", "test")
        for problem in read_jsonl(small.folder / f"data/{name}.jsonl", Problem)
    ]
    assert not {p.question for p in mine["train"] + mine["test"]} & set(theirs)


def test_a_selection_holds_out_the_questions_of_its_study_so_that_pi_0_is_the_same(small, tmp_path):
    data.main(out=tmp_path, study="quick_selection", params=small.shared["params"])
    asked = [
        {p.question for name in base.PROBLEM_FILES for p in read_jsonl(folder / name, Problem)}
        for folder in (tmp_path, small.folder / "data")
    ]
    assert asked[0] == asked[1]
