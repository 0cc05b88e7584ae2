"""The page of responses holds the responses as data, and nothing of them as HTML."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest

from geosd.reporting.samples_page import CHARACTERS, TOKENS, samples_html
from geosd.scores.scored_responses import ScoredResponse

EVIL = "</script><script>alert(1)</script><!--<img src=x onerror=alert(2)>\u2028"


def response(variant="geosd", problem="p1", tokens=("4", ""), **changes):
    values = {
        "model": "mini-qwen3",
        "variant": variant,
        "seed": 0,
        "problem_id": problem,
        "question": "3 + 1",
        "answer": "4",
        "solution": "3 + 1 = 4",
        "correct": True,
        "finish": "stop",
        "length": len(tokens),
        "tokens": tuple(tokens),
        "student": (0.123456789,) * len(tokens),
        "teacher": (1.23456e-7,) * len(tokens),
    }
    return ScoredResponse(**{**values, **changes})


class Elements(HTMLParser):
    """The elements of a page, and the text of its block of data."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.data, self.inside = [], "", False
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.inside = dict(attributes).get("id") == "data"

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, text):
        self.data += text if self.inside else ""


def test_what_a_model_writes_is_data_of_the_page_and_none_of_its_tags():
    evil = response(tokens=(EVIL, EVIL), question=EVIL, solution=EVIL, problem=EVIL, answer=EVIL)
    page, plain = Elements(samples_html("quick", [evil])), Elements(samples_html("q", [response()]))
    assert page.tags == plain.tags
    (problem,) = json.loads(page.data)["problems"]
    assert problem["responses"]["geosd"]["tokens"] == [EVIL, EVIL]
    assert {problem[name] for name in ("id", "question", "solution", "answer")} == {EVIL}


def test_a_study_s_name_is_text_too():
    assert "<title>Responses of study &lt;b&gt;" in samples_html("<b>", [response()])


def test_the_page_needs_no_other_file():
    page = samples_html("quick", [response()])
    assert not re.search(r"https?://|\bsrc=|\bhref=|@import|innerHTML|\beval\b", page)
    assert "default-src 'none'" in page and "{{" not in page


def test_each_problem_has_the_responses_of_its_methods_with_rounded_probabilities():
    rows = [response("pi_0"), response("geosd"), response("geosd", "p2", correct=False)]
    data = json.loads(Elements(samples_html("quick", rows)).data)
    assert data["methods"] == {"pi_0": "\u03c0\u2080", "geosd": "GeoSD"}
    first, second = data["problems"]
    assert list(first["responses"]) == ["pi_0", "geosd"] and list(second["responses"]) == ["geosd"]
    assert first["responses"]["geosd"]["student"] == [0.123, 0.123]
    assert first["responses"]["geosd"]["teacher"] == [1.23e-7, 1.23e-7]
    assert not second["responses"]["geosd"]["correct"]


def test_a_page_of_long_responses_stays_below_500_kb():
    long = tuple(f" token{n}" for n in range(4096))
    rows = [
        response(variant, f"p{n}", long, question="q" * 9000, solution="s" * 9000)
        for variant in ("pi_0", "sft", "grpo", "fwdkl", "revkl", "jsd", "tropd", "geosd")
        for n in range(12)
    ]
    page = samples_html("paper", rows)
    assert len(page.encode()) < 500_000
    problem = json.loads(Elements(page).data)["problems"][0]
    shown = problem["responses"]["geosd"]
    assert len(shown["tokens"]) == len(shown["teacher"]) == TOKENS // len(rows)
    assert shown["length"] == 4096
    assert len(problem["question"]) == CHARACTERS + 2


def test_a_page_without_responses_is_refused():
    with pytest.raises(ValueError, match="study quick has no scored response"):
        samples_html("quick", [])
