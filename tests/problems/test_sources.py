"""Data sets are found by name, one module each."""

import pytest

from geosd.problems.sources import DataSource, get_data_source, names, register


def test_every_source_is_found_and_is_one():
    assert set(names()) >= {"dapo-math", "jsonl", "search", "search-wide", "word-problems"}
    assert all(
        isinstance(get_data_source(name), DataSource) and get_data_source(name).limits
        for name in names()
    )


def test_an_unknown_source_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="(?s)'dapo-mth'; allowed are dapo-math.*Did you mean"):
        get_data_source("dapo-mth")


def test_a_source_cannot_take_a_name_that_is_not_its_modules():
    with pytest.raises(ValueError, match="(?s)registered by module.*Hint:"):
        module = {"__module__": "geosd.problems.sources.other"}
        register("another-name")(type("Other", (DataSource,), module))


@pytest.mark.parametrize("name", ["dapo-math", "jsonl", "word-problems"])
def test_the_typed_grader_says_why_and_never_only_false(name):
    grade = get_data_source(name).grader()
    try:
        verdicts = {
            text: grade(text, "7") for text in ("\\boxed{7}", "Answer: 8", "hm", "Answer: x+1")
        }
    finally:
        grade.close()
    assert [verdict.reason for verdict in verdicts.values()] == [
        "correct",
        "wrong answer",
        "no answer",
        "unreadable",
    ]
    assert [verdict.correct for verdict in verdicts.values()] == [True, False, False, False]
