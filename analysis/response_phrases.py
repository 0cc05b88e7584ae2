"""How many test responses of each method contain a phrase: what a method learns to say.

    python analysis/response_phrases.py results/smollm2_methods/runs.csv \\
        --phrases Reference 'Write the calculation' Answer:

The index is that of a study whose samples are there. The table of docs/smollm2.md was made by this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro

from geosd.config.run_folders import read_run_folders
from geosd.json_lines import read_jsonl
from geosd.problems.records import SampleRecord
from geosd.reporting.tables import markdown_table


def shares(samples: Sequence[SampleRecord], phrases: Sequence[str]) -> list[float]:
    """Per cent of the samples that the token limit ended, then of those with each phrase."""
    counts = [sum(sample.finish == "length" for sample in samples)]
    counts += [sum(phrase in sample.text for sample in samples) for phrase in phrases]
    return [100 * count / len(samples) for count in counts]


def main(index: Annotated[Path, tyro.conf.Positional], phrases: tuple[str, ...]) -> None:
    """Print a row for each model and method of a study, over all of its seeds and benchmarks."""
    samples: dict[tuple[str, str], list[SampleRecord]] = defaultdict(list)
    for run in read_run_folders(index):
        samples[run.model, run.variant] += read_jsonl(
            Path(run.evaluate) / "samples.jsonl", SampleRecord
        )
    rows = [["model", "method", "responses", "reach the cap", *phrases]]
    for (model, method), found in samples.items():
        cells = [f"{share:.1f} %" for share in shares(found, phrases)]
        rows.append([model, method, f"{len(found):,}", *cells])
    print(markdown_table(rows))


if __name__ == "__main__":
    tyro.cli(main)
