"""Ship what a finished study shows with the repository: everything that redraws it, and hashes."""

from __future__ import annotations

import json
from pathlib import Path

from geosd.cli import begin
from geosd.cli.redraw import CLAIMS, write_outputs
from geosd.config import load, resolve, settings
from geosd.reporting.shipping import ship_tidy_tables
from geosd.reporting.specs import output_specs


def main(
    study: str,
    tidy: tuple[Path, ...] = (),
    figures: Path = Path("figures"),
    params: Path = Path("params.yaml"),
    pipeline: Path = Path("dvc.yaml"),
) -> None:
    """Write the folder of a study's outputs that git keeps: `geosd.reporting.shipping` lists it.

    Args:
        study: Name of the study.
        tidy: Its tidy files, each known by its own name.
        figures: Where the outputs of studies lie, each study in its own folder.
        params: The configuration.
        pipeline: DVC's, whose outputs git must not keep too.

    Raises:
        ValueError: DVC keeps the study's outputs.
    """
    folder, resolved = figures / study, resolve(load(params), study)
    pointer = pipeline.parent / "published" / f"{folder.as_posix()}.dvc"
    if pointer.exists():
        raise ValueError(
            f"{pointer} lets DVC keep {folder}, and what DVC keeps git must not.\nHint: remove that"
            f" file and the line /{study} of {figures}/.gitignore, and ship again."
        )
    if pipeline.exists() and f"- {folder.as_posix()}/" in pipeline.read_text(encoding="utf-8"):
        raise ValueError(
            f"{pipeline} keeps {folder}, and what DVC keeps git must not.\nHint: ship another"
            " study, or let workflow/dvc/generate.py declare these outputs with `cache: false`."
        )
    known = [name for name in resolved.outputs if name == CLAIMS or name in output_specs()]
    # As the manifest holds them: what is drawn now is what is drawn from it later.
    outputs = json.loads(json.dumps({name: settings(name, resolved) for name in known}))
    ship_tidy_tables(tidy, folder)
    write_outputs(study, resolved.overlay.about, outputs, folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {len(known)} outputs, {size / 1e6:.1f} MB. git add {folder} docs/results.md")


if __name__ == "__main__":
    begin(main)
