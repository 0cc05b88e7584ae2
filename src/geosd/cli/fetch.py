"""Put the raw files of a study's data set in place: from the hub, or as they are there already.

Writes `raw.json`, the hash and the origin of each file. The files themselves go to the folder that
data.raw names and stay there, for all studies; what is there is checked and not fetched.
"""

from __future__ import annotations

from pathlib import Path

from tqdm import tqdm

from geosd.cli import begin
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.files import write_json
from geosd.problems.dataset_download import fetch_file, load_catalogue


def main(
    study: str, out: Path, lock: Path = Path("data.lock.json"), params: Path = Path("params.yaml")
) -> None:
    """Fetch the raw files of a study's data set, or check those in place.

    Args:
        study: Name of the study.
        out: Folder of `raw.json`.
        lock: Remembers hashes from the first fetch on; commit it.
        params: The configuration.
    """
    settings = settings_of("fetch", resolve(load(params), study))
    entries = load_catalogue(settings["source"])
    if settings["raw"] is None and entries:
        raise ValueError(
            f"data.raw is null, but {settings['source']} is made from raw files.\nHint: name the"
            " folder where they are to be put; docs/data.md says what they hold."
        )
    files = {}
    for entry in tqdm(entries, desc="raw files", unit="file"):
        files[entry.name] = fetch_file(entry, Path(settings["raw"]), lock)
    write_json(out / "raw.json", files)


if __name__ == "__main__":
    begin(main)
