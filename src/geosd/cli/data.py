"""Put the raw files of a study's data set in place, and draw its problems from them."""

from pathlib import Path

from tqdm import tqdm

from geosd.cli.job import StepJob
from geosd.config import load, resolve_study
from geosd.config import settings as settings_of
from geosd.files import write_json
from geosd.json_lines import write_jsonl
from geosd.problems.dataset_download import fetch_dataset_file, load_dataset_catalogue
from geosd.problems.sources import get_data_source


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the problems of a study: the data files and their card."""
    job = StepJob("data", params, study, out=out)
    settings = job.settings
    source = get_data_source(settings["source"])
    splits = source.prepare(settings)
    for remark in source.remarks(settings):
        print(f"note: {remark}")
    files = {"train": splits.train, "test": splits.test}
    for name in ("select_train", "select_validation"):
        files[name] = tuple(p for p in splits.select if p.benchmark == name)
    for name, problems in files.items():
        write_jsonl(out / f"{name}.jsonl", problems)
    write_json(out / "card.json", {**splits.card, "settings": settings})
    written = [*(out / f"{name}.jsonl" for name in files), out / "card.json"]
    job.write_manifest(out, [Path(settings["raw"])] if source.reads_raw else [], written)


def fetch_data_program(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Fetch the raw files of a study's data set, or check those in place."""
    settings = settings_of("fetch", resolve_study(load(params), study))
    files = {}
    for entry in tqdm(load_dataset_catalogue(settings["source"]), desc="raw files", unit="file"):
        files[entry.name] = fetch_dataset_file(entry, Path(settings["raw"]))
    write_json(out / "raw.json", files)
