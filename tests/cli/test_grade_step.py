import json

import pytest
from cases import python

from geosd.cli.grade import main
from geosd.files import DamagedFileError
from geosd.json_lines import DamagedLineError


@pytest.fixture
def rows(tmp_path):
    def write(*values):
        path = tmp_path / "rows.jsonl"
        lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return write


@pytest.mark.slow
def test_every_row_is_judged_in_order_and_keeps_its_fields(rows, tmp_path):
    source = rows(
        {"gold": "7", "response": r"\boxed{7}", "id": "a"},
        {"gold": "7", "response": r"\boxed{8}", "id": "b", "correct": True},
        {"gold": r"\frac{1}{2}", "response": "Answer: 0.5", "id": "c"},
        {"gold": r"\frac{1}{2}", "response": r"\boxed{\sqrt{2}+10^{10^{10}}}", "id": "d"},
        {"gold": "7", "response": None, "id": "e"},
    )
    out = tmp_path / "out.jsonl"
    words = ["-m", "geosd", "grade", "--in", source, "--out", out, "--seconds", "2"]
    done = python(*words, check=True)
    verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(v["id"], v["correct"], v["reason"]) for v in verdicts] == [
        ("a", True, "correct"),
        ("b", False, "wrong answer"),
        ("c", True, "correct"),
        ("d", False, "timeout"),
        ("e", False, "no answer"),
    ]
    assert verdicts[1]["recorded_correct"] is True
    assert verdicts[2]["answer"] == "0.5"
    assert "1 timeout" in done.stdout and "without having been found wrong" in done.stdout


def test_a_file_graded_twice_keeps_what_was_recorded_first(rows, tmp_path):
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    main(rows({"gold": "7", "response": "A: 7", "correct": False}), first)
    main(first, second)
    assert json.loads(second.read_text())["recorded_correct"] is False


def test_a_row_that_ended_at_the_cap_has_no_answer_and_the_rule_is_said(rows, tmp_path, capsys):
    out, answered = tmp_path / "out.jsonl", {"gold": "7", "response": "A: 7"}
    main(
        rows(
            answered | {"finish_reason": "length"},
            answered | {"finish_reason": "stop"},
            answered | {"finish_reason": None},
            answered,
        ),
        out,
    )
    verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(v["answer"], v["correct"], v["reason"]) for v in verdicts] == [
        (None, False, "truncated"),
        *[("7", True, "correct")] * 3,
    ]
    said = capsys.readouterr().out
    assert "4 rows: 3 correct, 1 truncated" in said
    assert 'finish_reason is "length" is truncated' in said
    assert "2 of 4 rows have no finish_reason and were graded as whole responses" in said
    main(rows(answered | {"finish_reason": "stop"}), out)
    assert "as whole" not in capsys.readouterr().out


def test_a_finish_reason_that_is_no_text_is_named(rows, tmp_path):
    with pytest.raises(DamagedLineError, match=r"rows\.jsonl:1: finish_reason is a JSON int"):
        main(rows({"gold": "7", "response": "A: 7", "finish_reason": 1}), tmp_path / "out.jsonl")


def test_a_lone_surrogate_is_written_as_it_was_read(rows, tmp_path):
    out = tmp_path / "out.jsonl"
    main(rows({"gold": "7", "response": "\ud800\nA: 7", "\udfff": 1}), out)
    row = json.loads(out.read_text(encoding="utf-8"))
    assert (row["response"], row["\udfff"], row["correct"]) == ("\ud800\nA: 7", 1, True)


@pytest.mark.parametrize("levels", [2_000, 200_000])
def test_a_deeply_nested_row_is_named_before_anything_is_graded(rows, tmp_path, levels):
    nested = '{"gold": "7", "response": "A: 7", "x": ' + "[" * levels + "]" * levels + "}"
    out = tmp_path / "out.jsonl"
    with pytest.raises(DamagedLineError, match=r"rows\.jsonl:2: (.|\n)*Hint"):
        main(rows({"gold": "7", "response": "A: 7"}, nested), out)
    assert not out.exists()


def test_a_nested_row_is_kept(rows, tmp_path):
    nested = "[" * 99 + "]" * 99
    out = tmp_path / "out.jsonl"
    main(rows(f'{{"gold": "7", "response": "A: 7", "x": {nested}}}'), out)
    assert json.dumps(json.loads(out.read_text())["x"]) == nested


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"gold": "7"}', '{"gold": 7, "response": "7"}', '{"gold": "7", "res']
)
def test_a_damaged_line_is_named_and_nothing_is_written(rows, tmp_path, line):
    source, out = rows({"gold": "7", "response": "A: 7"}, line), tmp_path / "out.jsonl"
    with pytest.raises(DamagedLineError, match=r"rows\.jsonl:2: (.|\n)*Hint"):
        main(source, out)
    assert not out.exists()


def test_a_file_without_rows_is_refused(tmp_path):
    (tmp_path / "rows.jsonl").write_text("")
    with pytest.raises(DamagedFileError, match=r"(?s)rows.jsonl: no row.*\nHint: "):
        main(tmp_path / "rows.jsonl", tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_blank_lines_and_the_marks_of_editors_are_passed_over(tmp_path):
    row = json.dumps({"gold": "7", "response": "A: 7"}).encode()
    source, out = tmp_path / "joined.jsonl", tmp_path / "out.jsonl"
    mark = b"\xef\xbb\xbf"
    source.write_bytes(b"\n" + mark + row + b"\r\n" + mark + row + b"\n   \n\n")
    main(source, out)
    assert [json.loads(line)["correct"] for line in out.read_text().splitlines()] == [True, True]
    source.write_bytes(mark + row + b"\n\n" + row[:-1] + b"\n")
    with pytest.raises(DamagedLineError, match="joined.jsonl:3: "):
        main(source, out)


def test_what_a_response_says_commands_no_terminal(rows, tmp_path, capsys):
    boxed = "\\boxed{\u001b]0;title\u0007\u001b[2J\u202e8\u009b1m}"
    main(rows({"gold": "7\u001b[1m", "response": boxed, "correct": True}), tmp_path / "out.jsonl")
    shown = capsys.readouterr().out
    assert all(sign.isprintable() or sign == "\n" for sign in shown)
    assert r"\x1b]0;title\x07\x1b[2J\u202e8\x9b1m" in shown and r"7\x1b[1m" in shown
    kept = json.loads((tmp_path / "out.jsonl").read_text())
    assert kept["response"] == boxed
