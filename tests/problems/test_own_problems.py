"""Data source `jsonl`: problems from files of one's own."""

import json
from collections import Counter

import pytest

from geosd.problems.dapo.raw_files import RawProblem
from geosd.problems.dapo.splits import split_without_overlaps
from geosd.problems.grading.typed_grader import LONGEST_RESPONSE, TypedGrader
from geosd.problems.sources import get_data_source
from geosd.problems.sources.jsonl import DamagedJsonlError, find_jsonl_files
from geosd.problems.sources.jsonl import read_jsonl_problems as read_graded_problems

SIZES = dict(train=20, select_train=4, select_validation=3, test_id=5, test_per_benchmark=2)
WORDS = "apple bear cloud drum east fig gate hill iron jar kite lamp moon nest oak pear".split()


@pytest.fixture(scope="module")
def read_problems():
    grader = TypedGrader()
    yield lambda path: read_graded_problems(path, grader)
    grader.close()


def question(number: int) -> str:
    """Questions that share few words."""
    digits = [number >> shift & 15 for shift in (0, 4, 8)]
    return " ".join(f"{WORDS[d]}{number}" for d in digits) + f" {number * 7919}?"


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rows(numbers):
    return [{"question": question(i), "answer": str(i), "level": 3} for i in numbers]


def draw(raw, **changed):
    settings = {"raw": str(raw), "seed": 0, "overlaps": "exclude", **SIZES, **changed}
    return get_data_source("jsonl").prepare(settings)


def everything(splits):
    return [*splits.train, *splits.select, *splits.test]


def test_one_file_gives_every_split_but_benchmarks(tmp_path):
    splits = draw(write(tmp_path / "own.jsonl", rows(range(40))))
    problems = everything(splits)
    assert Counter(each.benchmark for each in problems) == {
        **{"train": 20, "select_train": 4, "select_validation": 3, "id": 5}
    }
    assert len({each.id for each in problems}) == len({each.question for each in problems}) == 32
    for each in problems:  # the id names the line
        line = int(each.id.removeprefix("own-"))
        assert (each.question, each.answer) == (question(line - 1), str(line - 1))


def test_a_folder_has_a_benchmark_for_every_other_file(tmp_path):
    write(tmp_path / "raw/train.jsonl", rows(range(40)))
    published = [
        {"problem": row["question"], "answer": row["answer"]} for row in rows([100, 101, 102])
    ]
    write(tmp_path / "raw/hard.jsonl", published)  # as the hub has AIME and MATH-500
    write(tmp_path / "raw/odd-2.jsonl", rows(range(200, 205)))
    counts = Counter(each.benchmark for each in draw(tmp_path / "raw").test)
    assert counts == {"id": 5, "hard": 2, "odd-2": 2}
    whole = Counter(each.benchmark for each in draw(tmp_path / "raw", test_per_benchmark=None).test)
    assert whole == {"id": 5, "hard": 3, "odd-2": 5}


def test_neither_the_order_of_lines_nor_more_training_problems_change_the_test_problems(tmp_path):
    file = write(tmp_path / "own.jsonl", rows(range(40)))
    reversed_file = write(tmp_path / "turned.jsonl", rows(reversed(range(40))))
    questions = [each.question for each in draw(file).test]
    assert questions == [each.question for each in draw(reversed_file).test]
    assert questions == [each.question for each in draw(file, train=28).test]
    assert questions != [each.question for each in draw(file, seed=1).test]


def test_repeats_and_problems_of_a_benchmark_are_dropped_and_counted(tmp_path):
    again = {"question": "  " + question(3).replace(" ", "   "), "answer": 3}
    write(tmp_path / "train.jsonl", [*rows(range(34)), again])
    write(tmp_path / "other.jsonl", rows([5, 6, 300]))
    excluded = draw(tmp_path, train=20, test_per_benchmark=None)
    assert excluded.card["repeated"] == {"train": 1, "other": 0}
    assert excluded.card["in a benchmark"] == 2
    own = [each for each in everything(excluded) if each.benchmark != "other"]
    assert len(own) == 32 and not {question(5), question(6)} & {each.question for each in own}
    with pytest.raises(ValueError, match="(?s)2 of 34 .*32 are left for the 34.*Hint:"):
        draw(tmp_path, train=22)
    kept = draw(tmp_path, train=22, overlaps="keep")
    assert question(5) in {each.question for each in everything(kept) if each.benchmark != "other"}


LONG = "A shop sells {} red pens and {} blue pens every day; how many pens does it sell in {} days?"


def test_near_copies_of_a_benchmark_are_dropped_and_named(tmp_path):
    near = [{"question": LONG.format(n, 3, 9), "answer": str(9 * (n + 3))} for n in (11, 12)]
    write(tmp_path / "train.jsonl", [*rows(range(33)), *near])
    write(
        tmp_path / "hard.jsonl", [{"question": LONG.format(40, 7, 9), "answer": "423"}, *rows([3])]
    )
    excluded = draw(tmp_path)
    own = {each.question for each in everything(excluded) if each.benchmark != "hard"}
    assert len(own) == 32 and not own & {question(3), *(row["question"] for row in near)}
    card = excluded.card
    assert card["in a benchmark"] == 3
    assert card["benchmark problems in the training set"] == {"hard": 2}
    assert [(each["training_id"], each["kind"]) for each in card["overlaps"]] == [
        ("train-00034", "near"),
        ("train-00035", "near"),
        ("train-00004", "exact"),
    ]
    with pytest.raises(ValueError, match="(?s)3 of 35 .*32 are left for the 33.*overlaps: keep"):
        draw(tmp_path, train=21)
    kept = draw(tmp_path, train=23, overlaps="keep")
    assert near[0]["question"] in {each.question for each in everything(kept)}
    assert kept.card["overlaps"] == card["overlaps"] and kept.card["in a benchmark"] == 0


def test_both_sources_find_the_same_overlaps():
    own = [RawProblem("a", LONG.format(1, 2, 3), "9"), RawProblem("b", question(1), "1")]
    benchmark = {"hard": [RawProblem("h", LONG.format(1, 2, 4), "12")]}
    kept, card = split_without_overlaps(own, benchmark, exclude=True)
    assert [row.id for row in kept] == ["b"] and len(card["overlaps"]) == 1
    kept, again = split_without_overlaps(own, benchmark, exclude=False)
    assert [row.id for row in kept] == ["a", "b"] and again == card


def test_solutions_are_kept_in_the_card_by_problem(tmp_path):
    lines = [{**row, "solution": f"It is {row['answer']}."} for row in rows(range(32))]
    lines[3]["solution"] = boxed = rf"So \boxed{{{lines[3]['answer']}}}."
    splits = draw(write(tmp_path / "own.jsonl", lines))
    for name, worked in splits.card["worked_solutions"].items():
        (answer,) = [each.answer for each in everything(splits) if each.id == name]
        ending = (
            f"It is {answer}.\n\\boxed{{{answer}}}"  # as the instruction asks a response to end
        )
        assert worked == (boxed if name == "own-00004" else ending)
    assert splits.card["worked_solutions"].keys() == {each.id for each in everything(splits)}
    lines[3]["solution"] = r"So \boxed{-1}."
    with pytest.raises(ValueError, match=r"(?s)own.jsonl:4: solution boxes another.*Hint:"):
        draw(write(tmp_path / "own.jsonl", lines))


@pytest.mark.parametrize(
    ("solution", "message"),
    [
        (r"So \boxed{8}.", "solution boxes another answer than '7': '8' .wrong answer"),
        (r"So \boxed{7} and \boxed{8}.", "solution boxes another answer than '7': '7, 8'"),
        ("3 + 5 = 8. The answer is 8.", "solution states another answer than '7': '8'"),
        ("Add.\n**Answer:** $8$", "solution states another answer than '7': '8'"),
        ("3 + 5 = 8\n#### 8", "solution states another answer than '7': '8'"),
        (
            "x" * LONGEST_RESPONSE + r" \boxed{7}",
            "has 1,000,010 characters, and 1,000,000 are read",
        ),
    ],
)
def test_a_solution_that_contradicts_its_answer_is_named_with_the_cause(
    tmp_path, read_problems, solution, message
):
    write(tmp_path / "own.jsonl", [{"question": "a?", "answer": "7", "solution": solution}])
    with pytest.raises(DamagedJsonlError, match=f"(?s)own.jsonl:1: .*{message}.*Hint:"):
        read_problems(tmp_path / "own.jsonl")


@pytest.mark.parametrize(
    "solution",
    [
        "The answer is clear: 3 + 4.",
        "3 + 4 = 7",
        "The answer is 7.",
        "Answer: seven",
        "#### 8 of them\n#### 7.0",
    ],
)
def test_a_solution_that_states_no_other_answer_is_kept(tmp_path, read_problems, solution):
    write(tmp_path / "own.jsonl", [{"question": "a?", "answer": "7", "solution": solution}])
    (kept,) = read_problems(tmp_path / "own.jsonl")[1].values()
    assert kept.startswith(solution)


def test_files_with_a_mark_of_an_editor_may_be_joined(tmp_path, read_problems):
    first, second = (json.dumps({"question": f"{name}?", "answer": "1"}) for name in "ab")
    joined = "".join(f"\ufeff{line}\n" for line in ("", first, second))
    (tmp_path / "own.jsonl").write_text(joined, encoding="utf-8")
    assert [row.id for row in read_problems(tmp_path / "own.jsonl")[0]] == [
        "own-00002",
        "own-00003",
    ]


def test_the_names_of_keys_command_no_terminal(tmp_path, read_problems):
    write(tmp_path / "own.jsonl", [{"question": "a?", "\u001b[2J": "7"}])
    with pytest.raises(DamagedJsonlError) as caught:
        read_problems(tmp_path / "own.jsonl")
    assert r"\x1b[2J" in str(caught.value) and "\u001b" not in str(caught.value)


def test_the_layout_of_gsm8k_is_read_as_solution_and_answer(tmp_path):
    worked = "4 - 2 = <<4-2=2>>2 apples.\nSo it is"
    lines = [
        {"question": row["question"], "answer": f"{worked} {row['answer']}.\n#### {row['answer']}"}
        for row in rows(range(32))
    ]
    lines[3] |= {"solution": "By hand."}
    splits = draw(write(tmp_path / "own.jsonl", lines))
    solutions = splits.card["worked_solutions"]
    for each in everything(splits):
        assert each.answer.isdigit()
        by_hand = each.id == "own-00004"
        text = "By hand." if by_hand else f"{worked} {each.answer}."
        assert solutions[each.id] == f"{text}\n\\boxed{{{each.answer}}}"


def test_what_cannot_be_seen_around_an_answer_is_no_part_of_it(tmp_path, read_problems):
    write(tmp_path / "own.jsonl", [{"question": "a?", "answer": "\u00a02\u200b\ufeff "}])
    assert [each.answer for each in read_problems(tmp_path / "own.jsonl")[0]] == ["2"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"question": "a?"}', "answer is missing; keys of the line are question"),
        (
            '{"prompt": "a?", "answer": 1}',
            "question is missing; .* prompt, answer",
        ),
        ('{"question": "a?", "answer": ""}', "answer is blank: ''"),
        ('{"question": " \\t", "answer": "1"}', "question is blank"),
        ('{"question": "a?", "answer": "  "}', "answer is blank: '  '"),
        ('{"question": "a?", "answer": "1", "solution": 3}', "solution is 3: .*valid string"),
        ('{"question": 7, "answer": "7"}', "question is 7: .*valid string"),
        ('{"question": "a?", "answer": 0.5}', "answer is 0.5"),
        ('{"question": "a?", "answer": true}', "answer is True"),
        (
            '{"question": "a?", "answer": "7"',
            "Invalid JSON: EOF .*, column 32",
        ),
        ('["a?", "7"]', "object"),
        ('{"question": "a?", "answer": "\\u200b\\u00a0"}', r"answer is blank: '\\u200b\\xa0'"),
        ('{"question": "\\ufeff", "answer": "1"}', "question is blank"),
        (
            '{"question": "a?", "answer": "1", "solution": ""}',
            "solution is blank",
        ),
        ('{"question": "a?", "answer": "so\\n#### "}', "no single line after ####"),
        ('{"question": "a?", "answer": "#### so\\n2"}', "no single line after ####"),
        (
            '{"question": "a?", "answer": "%s"}' % ("9" * 3000),
            "not find equal to itself .unreadable",
        ),
        (
            r'{"question": "a?", "answer": "\\frac{1}{"}',
            "not find equal to itself .no answer",
        ),
        ('{"question": "one?", "answer": "2"}', "'2', but the same question has '1' in line 1"),
    ],
)
def test_a_damaged_line_is_named_by_file_and_number(tmp_path, line, message, read_problems):
    file = tmp_path / "own.jsonl"
    file.write_text('{"question": "one?", "answer": "1"}\n\n' + line + "\n")
    with pytest.raises(DamagedJsonlError, match=f"(?s)own.jsonl:3: .*{message}.*Hint:"):
        read_problems(file)


def test_bytes_that_are_no_text_are_named_by_file_and_number(tmp_path, read_problems):
    (tmp_path / "own.jsonl").write_bytes(b'{"question": "\xff", "answer": "1"}\n')
    with pytest.raises(DamagedJsonlError, match="own.jsonl:1: "):
        read_problems(tmp_path / "own.jsonl")


def test_a_file_without_a_line_is_named_and_the_mark_of_an_editor_at_its_begin_is_no_fault(
    tmp_path, read_problems
):
    file = tmp_path / "own.jsonl"
    file.write_text("\n")
    with pytest.raises(DamagedJsonlError, match="(?s)own.jsonl: holds no problem.*Hint:"):
        read_problems(file)
    file.write_text('{"question": "one?", "answer": "1"}\n', encoding="utf-8-sig")
    assert [each.text for each in read_problems(file)[0]] == ["one?"]


@pytest.mark.parametrize("raw", [None, "nowhere"])
def test_a_path_without_problems_is_named(raw, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=f"(?s)data.raw is {raw}, .*Hint:"):
        find_jsonl_files(raw)


@pytest.mark.parametrize("name", ["id", "select_train", "a b"])
def test_a_benchmark_cannot_take_the_name_of_a_split(tmp_path, name):
    for each in ("train", name):
        write(tmp_path / f"{each}.jsonl", rows([1]))
    with pytest.raises(ValueError, match=f"(?s)cannot be called '{name}'.*Hint:"):
        find_jsonl_files(str(tmp_path))


def test_a_benchmark_that_is_too_small_is_named(tmp_path):
    write(tmp_path / "train.jsonl", rows(range(40)))
    write(tmp_path / "small.jsonl", rows([100]))
    with pytest.raises(ValueError, match="(?s)'small' has 1 problems, fewer than the 2.*Hint:"):
        draw(tmp_path)
