"""Draw the problems of a study, and of a selection of its hyperparameters.

Writes train.jsonl and test.jsonl; select_train.jsonl and select_validation.jsonl, which a selection
trains and is judged on in their place; card.json with what was drawn, kept and dropped; and, last,
a manifest.
"""

from __future__ import annotations

from pathlib import Path

from geosd.cli import begin
from geosd.cli.job import Job
from geosd.files import write_json, write_jsonl
from geosd.problems.sources import get_data_source

SELECTION = ("select_train", "select_validation")


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the problems of a study: the data files and their card.

    Args:
        study: Name of the study.
        out: Folder of the problem files and their card.
        params: The configuration.
    """
    job = Job("data", params, study)
    settings = job.settings
    source = get_data_source(settings["source"])
    splits = source.prepare(settings)
    files = {"train": splits.train, "test": splits.test}
    for name in SELECTION:
        files[name] = tuple(p for p in splits.select if p.benchmark == name)
    for name, problems in files.items():
        write_jsonl(out / f"{name}.jsonl", problems)
    write_json(out / "card.json", {**splits.card, "settings": settings})
    written = [*(out / f"{name}.jsonl" for name in files), out / "card.json"]
    job.write_manifest(out, [Path(settings["raw"])] if source.reads_raw else [], written)


if __name__ == "__main__":
    begin(main)
