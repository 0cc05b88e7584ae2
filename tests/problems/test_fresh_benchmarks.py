"""Fresh benchmarks: read with the others, pinned, decontaminated, and never averaged."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import replace

import huggingface_hub
import pyarrow
import pyarrow.parquet
import pytest

from geosd.cli import plan
from geosd.problems.dapo.raw_files import BENCHMARKS, PREFIX, SUFFIX, TRAINING
from geosd.problems.dataset_download import (
    DatasetCatalogueEntry,
    WrongFileError,
    downloaded_answers_sha256,
    fetch_dataset_file,
    load_dataset_catalogue,
    load_fresh,
)
from geosd.problems.fresh_benchmarks import (
    FreshBenchmark,
    fresh_benchmarks,
    in_ood_average,
    is_fresh,
)
from geosd.problems.fresh_files import check_fresh, check_pin
from geosd.problems.records import SampleRecord
from geosd.problems.study_problems import prepare, remarks
from geosd.scores.consensus import consensus_rows
from geosd.scores.problems_and_seeds import shares_by_problem_and_seed
from geosd.scores.sample_tables import sample_share_rows
from geosd.scores.score_table import ScoredRun, collect_scores, score_run, score_table_by_variant
from geosd.scores.tidy import tidy_rows_of_runs

SPRING = "In spring a gardener plants {} roses and {} tulips in every row; how many in {} rows?"
AIME_2026 = (
    "277 62 79 70 65 441 396 244 29 156 896 161 39 681 83"
    " 178 243 503 279 190 50 754 245 669 850 132 223 107 157 393"
)
"""The answers of AIME 2026 I and II, in the order of the problems."""
SIZES = {"train": 4, "select_train": 2, "select_validation": 2, "test_id": 3}


def lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def problem(name, number, text=None):
    return {
        "id": f"{name}-{number}",
        "problem": text or f"{name} asks {number * 7919} and {number * 104729}: what is it?",
        "answer": str(number),
    }


@pytest.fixture
def raw(tmp_path):
    """Raw files of DAPO-Math: 12 problems, two near one of spring26's; four benchmarks; spring26.

    autumn26 is another fresh benchmark. No training problem is a copy of one of its problems.
    """
    texts = [f"Task {n}: find {n * 7919} modulo {n * 6007}." for n in range(12)]
    texts += [SPRING.format(n, 3, 9) for n in (11, 12)]
    rows = [
        {
            "prompt": [{"content": f"{PREFIX}{text}{SUFFIX}", "role": "user"}],
            "reward_model": {"ground_truth": str(n)},
            "extra_info": {"index": f"dapo-{n}"},
        }
        for n, text in enumerate(texts)
    ]
    (tmp_path / TRAINING).parent.mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / TRAINING)
    for name, file in BENCHMARKS.items():
        lines(tmp_path / file, [problem(name, n) for n in range(2)])
    spring = [problem("spring26", 0, SPRING.format(40, 7, 9)), problem("spring26", 1)]
    lines(tmp_path / "bench/spring26.jsonl", spring)
    lines(tmp_path / "bench/autumn26.jsonl", [problem("autumn26", n) for n in range(3)])
    return tmp_path


def pinned(raw, *names):
    """The texts of `data.fresh` that pin files as they are."""
    texts = []
    for name in names:
        content = (raw / f"bench/{name}.jsonl").read_bytes()
        texts.append(f"{name}@{hashlib.sha256(content).hexdigest()}")
    return texts


def settings(raw, fresh, **changed):
    of_study = {"source": "dapo-math", "raw": str(raw), "seed": 0, "overlaps": "exclude"}
    return {**of_study, **SIZES, "test_per_benchmark": None, "fresh": fresh, **changed}


def test_a_study_has_a_fifth_and_a_sixth_benchmark_and_trains_on_no_copy_of_them(raw):
    plain = prepare(settings(raw, []))
    both = prepare(settings(raw, pinned(raw, "spring26", "autumn26")))
    of_four = {name: 2 for name in BENCHMARKS}
    counts = Counter(each.benchmark for each in both.test)
    assert counts == {"id": 3, **of_four, "fresh-spring26": 2, "fresh-autumn26": 3}
    assert Counter(each.benchmark for each in plain.test) == {"id": 3, **of_four}
    assert plain.card["excluded"]["in a benchmark"] == 0
    assert both.card["excluded"]["in a benchmark"] == 2
    copies = [(each["benchmark"], each["training_id"]) for each in both.card["overlaps"]]
    assert copies == [("fresh-spring26", "dapo-12"), ("fresh-spring26", "dapo-13")]
    own = [*both.train, *both.select, *(each for each in both.test if each.benchmark == "id")]
    assert not {each.id for each in own} & {"dapo-12", "dapo-13"}
    assert set(both.card["files"]) - set(plain.card["files"]) == {
        "bench/spring26.jsonl",
        "bench/autumn26.jsonl",
    }


def test_a_file_that_nothing_pins_is_refused_with_its_pin(raw):
    with pytest.raises(WrongFileError, match="(?s)spring26.jsonl: nothing pins it.*@") as error:
        prepare(settings(raw, ["spring26"]))
    (pin,) = re.findall(r"spring26@[0-9a-f]{64}", str(error.value))
    assert [pin] == pinned(raw, "spring26")
    assert len(prepare(settings(raw, [pin])).test) == 3 + 8 + 2
    edited = (raw / "bench/spring26.jsonl").read_text().replace("tulips", "violets")
    (raw / "bench/spring26.jsonl").write_text(edited)
    with pytest.raises(WrongFileError, match="(?s)spring26.jsonl: SHA-256 expected .*another edit"):
        prepare(settings(raw, [pin]))


def test_a_file_that_is_not_there_is_named_with_those_that_can_be_fetched(raw):
    (raw / "bench/spring26.jsonl").unlink()

    def check(texts):
        check_fresh(raw, fresh_benchmarks(texts), "dapo-math")

    for reads in (lambda: prepare(settings(raw, ["spring26"])), lambda: check(["spring26"])):
        with pytest.raises(FileNotFoundError, match=r"(?s)spring26.jsonl is not there.*aime26, hm"):
            reads()
    check(["aime26"])  # this one will be fetched


def test_a_fifth_file_is_named_where_nobody_reads_it(raw):
    (note,) = remarks(settings(raw, pinned(raw, "autumn26")))
    assert "spring26.jsonl" in note and "autumn26" not in note and "data.fresh" in note
    assert remarks(settings(raw, pinned(raw, "autumn26", "spring26"))) == []


def test_an_answer_that_no_response_could_match_is_named_by_line(raw):
    rows = [problem("spring26", 0), {**problem("spring26", 1), "answer": "see below; " * 300}]
    lines(raw / "bench/spring26.jsonl", rows)
    with pytest.raises(WrongFileError, match="(?s)spring26.jsonl:2: answer is 'see.*Hint:"):
        prepare(settings(raw, pinned(raw, "spring26")))


def test_a_benchmark_of_ones_own_files_is_fresh_by_its_name(tmp_path):
    rows = [{"question": f"What is {n * 7919} less {n * 6007}?", "answer": n} for n in range(14)]
    lines(tmp_path / "train.jsonl", [*rows, {"question": SPRING.format(1, 2, 3), "answer": 9}])
    lines(tmp_path / "old.jsonl", [{"question": "How old is 7?", "answer": 7}])
    lines(tmp_path / "new.jsonl", [{"question": SPRING.format(4, 2, 3), "answer": 18}])
    own = settings(tmp_path, ["new"], source="jsonl")
    splits = prepare(own)
    assert Counter(each.benchmark for each in splits.test) == {"id": 3, "old": 1, "fresh-new": 1}
    assert splits.card["in a benchmark"] == 1  # the near copy of the fresh one
    with pytest.raises(ValueError, match="(?s)lists newer, which is no .*Hint: .* new, old"):
        prepare({**own, "fresh": ["newer"]})
    (tmp_path / "new.jsonl").rename(tmp_path / "fresh-new.jsonl")
    with pytest.raises(ValueError, match="(?s)a benchmark is called fresh-new.*Hint:"):
        prepare({**own, "fresh": []})


@pytest.mark.parametrize("text", ["", "a b", "a/b", "aime26@12", "@" + "0" * 64, "-a"])
def test_a_text_that_names_no_benchmark_is_refused(text):
    with pytest.raises(ValueError, match="(?s)is no fresh benchmark.*Hint:"):
        fresh_benchmarks([text])
    with pytest.raises(ValueError, match="(?s)aime26 stands twice.*Hint:"):
        fresh_benchmarks(["aime26", "aime26@" + "0" * 64])


# --- the catalogue --------------------------------------------------------------------------------


def test_the_catalogue_adds_those_that_a_study_lists():
    plain = load_dataset_catalogue("dapo-math")
    assert [entry.name for entry in plain] == [str(TRAINING), *map(str, BENCHMARKS.values())]
    listed = load_dataset_catalogue(
        "dapo-math", fresh_benchmarks(["hmmt_feb26", "mine@" + "0" * 64])
    )
    assert [entry.name for entry in listed[len(plain) :]] == ["bench/hmmt_feb26.jsonl"]
    for entry in load_fresh("dapo-math").values():
        assert re.fullmatch("[0-9a-f]{40}", entry.revision) and entry.columns is not None
    assert load_fresh("search") == {}


def test_the_answers_of_aime_2026_have_the_hash_of_the_catalogue():
    entry = load_fresh("dapo-math")["aime26"]
    answers = AIME_2026.split()
    assert (len(answers), downloaded_answers_sha256(answers)) == (entry.rows, entry.answers)


def test_a_set_of_unknown_answers_is_fetched_and_then_needs_a_pin(tmp_path, monkeypatch):
    rows = [{"problem_idx": n, "problem": f"{n}?", "answer": str(n)} for n in range(3)]
    file = tmp_path / "train.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *_, **__: str(file))
    columns = {"id": "problem_idx", "problem": "problem", "answer": "answer"}
    entry = DatasetCatalogueEntry(
        "bench/new26.jsonl", "o/new", "0" * 40, "f", None, columns=columns, rows=3, fresh=True
    )
    record = fetch_dataset_file(entry, tmp_path)
    path = tmp_path / entry.name
    with pytest.raises(WrongFileError, match=f"(?s)nothing pins it.*new26@{record['sha256']}"):
        check_pin(FreshBenchmark("new26"), path, entry)
    check_pin(FreshBenchmark("new26", record["sha256"]), path, entry)
    check_pin(FreshBenchmark("new26"), path, replace(entry, answers="known"))
    with pytest.raises(WrongFileError, match="expected 4 problems whose answers hash to anything"):
        fetch_dataset_file(replace(entry, rows=4), tmp_path)


# --- scores ---------------------------------------------------------------------------------------


def sampled(benchmark, right):
    return [
        SampleRecord(benchmark, f"p{n}", k, "", 1, "1", k < right, "stop")
        for n in range(2)
        for k in range(4)
    ]


OLD = [*sampled("id", 3), *sampled("long", 2), *sampled("easy", 4)]
NEW = [*OLD, *sampled("fresh-aime26", 1)]


def test_no_average_counts_a_fresh_benchmark():
    assert is_fresh("fresh-aime26") and not is_fresh("aime26")
    names = ("id", "select_train", "fresh-a", "aime24")
    assert [name for name in names if in_ood_average(name)] == ["aime24"]
    plain, both = (score_run(samples, [1, 4]) for samples in (OLD, NEW))
    fresh = both[both["split"] == "fresh"]
    assert set(fresh["benchmark"]) == {"fresh-aime26"}
    rest = both[both["split"] != "fresh"].reset_index(drop=True)
    assert rest.equals(plain) and 75.0 in set(plain[plain["benchmark"] == "ood_avg"]["value"])
    assert consensus_rows(NEW, 4) == consensus_rows(OLD, 4)
    table = tidy_rows_of_runs("shares", {ScoredRun("m", "v", 0): sample_share_rows(NEW)})
    assert [*shares_by_problem_and_seed(table, "m", "v", True)] == ["easy", "long"]
    assert [*shares_by_problem_and_seed(table, "m", "v", False)] == ["id"]


def test_metrics_have_a_fresh_benchmark_under_its_own_name():
    tables = [collect_scores({ScoredRun("m", "v", 0): score_run(s, [1, 4])}) for s in (OLD, NEW)]
    plain, both = (score_table_by_variant(table)["m"]["v"] for table in tables)
    assert both == {**plain, "aime26 avg@4": 25.0, "aime26 pass@4": 100.0}


# --- the plan -------------------------------------------------------------------------------------

EVALUATION = {"samples": 4, "coverage": 8, "response_tokens": 100}


def planned(of_data):
    return plan._evaluation({"purpose": "study", **of_data}, EVALUATION)


def test_the_plan_counts_the_benchmarks_of_ones_own_files(tmp_path):
    for name in ("train", "a", "b", "c", "d", "e"):
        lines(tmp_path / f"{name}.jsonl", [{"question": f"{n}", "answer": n} for n in range(25)])
    own = settings(tmp_path, ["e"], source="jsonl", test_per_benchmark=20)
    work = planned(own)
    assert (work.prompts, work.sequences) == (3 + 5 * 20, 3 * 4 + 5 * 20 * 8)
    assert planned({**own, "test_per_benchmark": None}).prompts == 3 + 5 * 25


def test_the_plan_counts_fresh_benchmarks_beside_the_papers_without_any_file(tmp_path):
    assert planned(settings(tmp_path, [])).prompts == 3 + 30 + 30 + 40 + 500
    assert planned(settings(tmp_path, ["aime26", "hmmt_feb26"])).prompts == 3 + 600 + 30 + 33
    lines(tmp_path / "bench/mine.jsonl", [problem("mine", n) for n in range(7)])
    assert planned(settings(tmp_path, ["mine"])).prompts == 3 + 600 + 7


@pytest.mark.parametrize(("source", "kinds"), [("word-problems", 3), ("search", 4)])
def test_the_plan_counts_the_benchmarks_of_generated_problems(source, kinds):
    of_data = settings(None, [], source=source, test_per_benchmark=6)
    drawn = {each.benchmark for each in prepare({**of_data, "conflict": 1.0}).test} - {"id"}
    assert len(drawn) == kinds and planned(of_data).prompts == 3 + 6 * kinds
