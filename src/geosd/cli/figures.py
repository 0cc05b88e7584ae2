"""Make the tables and figures of a finished or shipped study, and nothing else."""

import textwrap
from pathlib import Path

from geosd.cli.ship import redraw
from geosd.cli.snakemake_runs import rules_of_outputs, snakemake
from geosd.config import load, resolve
from geosd.config.run_folders import RunFolders
from geosd.reporting.shipping import MANIFEST, read_shipped
from geosd.reporting.specs import output_specs


def main(study: str = "quick") -> None:
    """Make the tables and figures of a finished or shipped study; nothing is run.

    A clone that has run nothing has the tidy tables of a shipped study, which are enough.

    Raises:
        SystemExit: The study is not shipped, and what tables are made of is not there.
    """
    missing = missing_tidy_files(study)
    if not missing:
        before = _modified(study)
        targets = ("tables", "figures")
        snakemake(study, "--logger", "brief", *rules_of_outputs(), *targets, "--", *targets)
        drawn = {path.stem for path, at in _modified(study).items() if before.get(path) != at}
        how = ", ".join(sorted(drawn)) or "nothing to draw again"
    elif Path("figures", study, MANIFEST).exists():
        shipped = read_shipped(Path("figures", study)).files
        redraw(study)
        made = read_shipped(Path("figures", study)).files
        changed = [name for name, digest in made.items() if shipped.get(name) != digest]
        how = f"not as shipped: {', '.join(changed)}" if changed else "all as shipped"
        how = f"{len(made)} files drawn of its source/, {how}"
    else:
        listed = "\n".join(f"  {file}" for file in missing)
        raise SystemExit(
            f"Study {study} is neither finished nor shipped: what its figures show is not there:\n"
            f"{listed}\nHint: `make run STUDY={study}` makes it; `make plan STUDY={study}` says the"
            " cost."
        )
    print(textwrap.fill(f"Figures  figures/{study}/: {how}", 80, subsequent_indent=" " * 9))


def _modified(study: str) -> dict[Path, int]:
    """When the files of a study's figures were written."""
    return {path: path.stat().st_mtime_ns for path in Path("figures", study).glob("*_*.*")}


def missing_tidy_files(study: str) -> list[str]:
    """The tidy files that `geosd figures` would draw a study from, and that are not there."""
    resolved = resolve(load("params.yaml"), study)
    specs = output_specs()
    reads: set[str] = set()
    for name in resolved.outputs:
        if name in specs:
            reads.update(specs[name].reads)
    missing = []
    for tidy, files in RunFolders(resolved).tidy_files().items():
        if tidy in reads:
            missing += [file for file in files if not Path(file).exists()]
    return missing
