"""The card of a study's problems, in the form of the hub's data sets."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import DatasetCard, DatasetCardData

from geosd.files import write_text

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
"""Bound, and the hub's word for a data set of fewer rows."""
TEXT = """
# Problems of study {study}

Drawn by geosd from the source `{source}`. Each line of a file is a problem: `id`, `benchmark`,
`question`, `answer`. `id` names problems like those that are trained on; every other benchmark is
out of distribution.

| file | benchmark | problems |
|:--|:--|--:|
{rows}

## How they were drawn

```json
{card}
```

## Limits

{limits}
"""


def write_data_card(
    folder: Path,
    *,
    study: str,
    source: str,
    counts: Mapping[str, Mapping[str, int]],
    card: Mapping[str, Any],
    limits: str,
    licence: str | None,
    origins: Mapping[str, str],
) -> None:
    """Write the card of a study's problems as the README.md of their folder.

    Args:
        folder: Of the files.
        study: Whose problems they are.
        source: Their data source.
        counts: Split, the name of a file without its ending -> benchmark -> number of problems.
        card: `card.json`, which says how they were drawn.
        limits: What models of these problems must not be taken for.
        licence: Of the problems; None where it is another's to say.
        origins: Data set of the hub that they are from -> its commit.
    """
    total = sum(sum(of_split.values()) for of_split in counts.values())
    size = next((word for bound, word in SIZES if total < bound), "n>1M")
    data = DatasetCardData(
        license=licence or "other",
        license_name=None if licence else "that-of-the-sources",
        pretty_name=f"geosd, problems of study {study}",
        size_categories=size,
        source_datasets=[f"extended|{repo}" for repo in origins] or ["original"],
        task_categories=["text-generation"],
        tags=["geosd", "math"],
        configs=[
            {
                "config_name": "default",
                "data_files": [{"split": name, "path": f"{name}.jsonl"} for name in counts],
            }
        ],
    )
    rows = [
        f"| `{split}.jsonl` | {benchmark} | {number} |"
        for split, of_split in counts.items()
        for benchmark, number in of_split.items()
    ]
    text = TEXT.format(
        study=study,
        source=source,
        rows="\n".join(rows),
        card=json.dumps(card, indent=2, sort_keys=True, ensure_ascii=False),
        limits=limits,
    )
    if origins:
        lines = [f"- `{repo}` at commit `{revision}`" for repo, revision in origins.items()]
        text += "\n## Sources\n\n" + "\n".join(lines) + "\n"
    write_text(folder / "README.md", str(DatasetCard(f"---\n{data.to_yaml()}\n---\n{text}")))
