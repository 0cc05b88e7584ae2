"""Put the raw files of a study's data set in place, and draw its problems from them."""

from pathlib import Path

from tqdm import tqdm

from geosd.cli.job import StepJob
from geosd.config import load, resolve_study
from geosd.config import settings as settings_of
from geosd.files import write_json
from geosd.json_lines import write_jsonl
from geosd.problems.dataset_download import fetch_dataset_file, load_dataset_catalogue
from geosd.problems.fresh_benchmarks import fresh_benchmarks
from geosd.problems.fresh_files import check_fresh, fresh_hashes
from geosd.problems.sources import get_data_source
from geosd.problems.study_problems import prepare, remarks


def main(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Draw the problems of a study: the data files and their card."""
    job = StepJob("data", params, study, out=out)
    settings = job.settings
    splits = prepare(settings)
    for remark in remarks(settings):
        print(f"note: {remark}")
    files = {"train": splits.train, "test": splits.test}
    for name in ("select_train", "select_validation"):
        files[name] = tuple(p for p in splits.select if p.benchmark == name)
    for name, problems in files.items():
        write_jsonl(out / f"{name}.jsonl", problems)
    write_json(out / "card.json", {**splits.card, "settings": settings})
    reads_raw = get_data_source(settings["source"]).reads_raw
    written = [*(out / f"{name}.jsonl" for name in files), out / "card.json"]
    job.write_manifest(out, [Path(settings["raw"])] if reads_raw else [], written)


def fetch_data_program(study: str, out: Path, params: Path = Path("params.yaml")) -> None:
    """Fetch the raw files of a study's data set, or check those in place."""
    settings = settings_of("fetch", resolve_study(load(params), study))
    raw, fresh = Path(settings["raw"]), fresh_benchmarks(settings.get("fresh", ()))
    files = {}
    for entry in tqdm(
        load_dataset_catalogue(settings["source"], fresh), desc="raw files", unit="file"
    ):
        files[entry.name] = fetch_dataset_file(entry, raw)
    check_fresh(raw, fresh, settings["source"])
    for name, digest in fresh_hashes(raw, fresh).items():
        files.setdefault(name, {"sha256": digest})
    write_json(out / "raw.json", files)
