"""Every transcribed setting stands in the paper's own words."""

from __future__ import annotations

import re

import pytest

from geosd.claims.published import published

ENTRIES = published()["hyperparameters"]["entries"]
WORDS = {
    "dapo-math": "DAPO-Math",
    "bfloat16": "bf16",
    "float32": "fp32",
    "adamw": "AdamW",
    "kfac": "nat. grad.",
    "live": "the current student",
    "hellinger": "Hellinger",
    "sequence": r"\tfrac{1}{T}",
}


def numbers(text):
    """All numbers of a text, powers of ten and fractions evaluated."""
    found = {float(a) for a in re.findall(r"\d+(?:\.\d+)?", text)}
    found |= {float(a) * 10 ** int(b) for a, b in re.findall(r"(\d+)×10\^\{(-?\d+)\}", text)}
    found |= {10 ** int(b) for b in re.findall(r"10\^\{(-?\d+)\}", text)}
    found |= {int(a) / int(b) for a, b in re.findall(r"(\d+)/(\d+)", text)}
    found |= {1000.0 * int(a) for a in re.findall(r"(\d+)K\b", text)}
    return found | ({10.0} if "ten runs" in text else set())


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: f"{e['key']}={e['value']}")
def test_the_value_stands_in_the_papers_words(entry, paper_prose):
    assert entry["text"] in paper_prose
    value = entry["value"]
    if entry["key"] == "training.privilege":
        assert value == 1.0 and "full correct solution" in entry["text"]
    elif isinstance(value, str):
        assert WORDS[value] in entry["text"]
    else:
        for number in value if isinstance(value, list) else [value]:
            assert any(number == pytest.approx(quoted) for quoted in numbers(entry["text"]))


def test_an_entry_about_some_goes_before_the_one_about_all():
    about_all: set[str] = set()
    for entry in ENTRIES:
        assert entry["key"] not in about_all
        if not {"models", "variants"} & set(entry):
            about_all.add(entry["key"])


def test_large_models_are_the_ladders_with_thirty_two_blocks():
    ladder = published()["kfac_memory"]["rows"]
    for key, column in (("blocks", "blocks"), ("storage", "storage")):
        some, rest = (e for e in ENTRIES if e["key"] == f"training.optimiser.kfac.{key}")
        for model, row in ladder.items():
            assert row[column] == (some if model in some["models"] else rest)["value"]
