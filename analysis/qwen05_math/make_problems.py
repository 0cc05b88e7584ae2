"""The problems of study `qwen05_math`, from three published files that catalogue.yaml pins.

    python analysis/qwen05_math/make_problems.py --gsm8k train.jsonl --math500 test.jsonl \\
        --amc23 test.jsonl

writes data/qwen05_math, which params.yaml names: GSM8K's training problems as they are, with their
human solutions, MATH-500's problems of levels 1 and 2, and AMC 2023. Each file is held to its hash,
or to its number of rows and its answers.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import tyro
import yaml

from geosd.files import sha256, write_text
from geosd.problems.dataset_download import downloaded_answers_sha256

CATALOGUE = Path(__file__).with_name("catalogue.yaml")


def checked_rows(path: Path, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a published file, answers that are whole numbers as such: 27 for 27.0.

    Raises:
        ValueError: It is not the file of the catalogue's entry.
    """
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    for row in rows:
        row["answer"] = re.sub(r"^(-?\d+)\.0+$", r"\1", str(row["answer"]))
    found = {"sha256": sha256(path), "rows": len(rows)}
    if "answers" in entry:
        found["answers"] = downloaded_answers_sha256(row["answer"] for row in rows)
    for name, got in found.items():
        if entry[name] is not None and entry[name] != got:
            raise ValueError(
                f"{path}: {name} is {got}, expected {entry[name]}.\nHint: take {entry['file']} of"
                f" {entry['repo']} at {entry['revision']}."
            )
    return rows


def problem(row: dict[str, Any]) -> dict[str, str]:
    """Question and answer of a row of a benchmark, which calls the question so or a problem."""
    return {"question": row.get("question") or row["problem"], "answer": row["answer"]}


def main(gsm8k: Path, math500: Path, amc23: Path, out: Path = Path("data/qwen05_math")) -> None:
    """Check three files, and write the folder that data.raw names."""
    catalogue = yaml.safe_load(CATALOGUE.read_text(encoding="utf-8"))
    given = {"train.jsonl": gsm8k, "math500.jsonl": math500, "amc23.jsonl": amc23}
    texts = {}
    for name, path in given.items():
        entry = catalogue[name]
        rows = checked_rows(path, entry)
        kept = [row for row in rows if "levels" not in entry or row["level"] in entry["levels"]]
        texts[name] = "".join(json.dumps(problem(row), ensure_ascii=False) + "\n" for row in kept)
        print(f"{name}: {len(kept)} of {len(rows)} problems")
    for name, text in texts.items():
        write_text(out / name, text)


if __name__ == "__main__":
    tyro.cli(main)
