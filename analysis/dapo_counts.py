"""Print the data card of a folder of raw files, without writing anything.

python analysis/dapo_counts.py --raw data/raw           the counts
python analysis/dapo_counts.py --raw data/raw --full    and every overlap and conflict
"""

import json
from pathlib import Path
from typing import Literal

import tyro

from geosd.problems.dapo.raw_files import read_raw_files
from geosd.problems.dapo.splits import clean_and_split

PAPER_SIZES = dict(
    train=1000, select_train=100, select_validation=200, test_id=500, test_per_benchmark=None
)


def main(
    raw: Path = Path("data/raw"),
    full: bool = False,
    overlaps: Literal["exclude", "keep"] = "exclude",
    seed: int = 0,
) -> None:
    """Print the data card of DAPO's raw files: what would be kept and dropped.

    Args:
        raw: Folder of the raw files.
        full: Print every overlap and conflict; otherwise their numbers.
        overlaps: Whether problems of a benchmark are left out of the draw.
        seed: Of the draw.
    """
    prepared = clean_and_split(
        read_raw_files(raw), {**PAPER_SIZES, "overlaps": overlaps, "seed": seed}
    )
    short = {k: len(v) if isinstance(v, list) else v for k, v in prepared.card.items()}
    print(json.dumps(dict(prepared.card) if full else short, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    tyro.cli(main)
