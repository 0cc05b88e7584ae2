"""Make the tables and figures of a finished or shipped study or family, and nothing else."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from geosd.cli import ship, ship_family
from geosd.cli.snakemake_runs import snakemake, snakemake_output_rules
from geosd.config import Family, Study, load, resolve_study_or_family
from geosd.config.run_folders import RESULTS, RunFolders
from geosd.reporting.shipping import MANIFEST, changed_shipped_files, read_shipped
from geosd.reporting.specs import output_specs


def main(study: str = "quick") -> None:
    """Make the tables and figures of a finished or shipped study; nothing is run.

    A clone that has run nothing has the tidy tables of a shipped study, which are enough. Of a
    family of studies they are drawn in the same way.

    Raises:
        SystemExit: The study is not shipped, and what tables are made of is not there.
    """
    resolved = resolve_study_or_family(load("params.yaml"), study)
    read = _tidy_files_shown(resolved)
    missing = [path for path in read if not path.exists()]
    is_shipped = Path("figures", study, MANIFEST).exists()
    if is_shipped and (missing or _reads_what_is_shipped(resolved, read)):
        how = _redrawn(study)
    elif missing:
        listed = "\n".join(f"  {path}" for path in missing)
        raise SystemExit(
            f"{resolved.noun.capitalize()} {study} is neither finished nor shipped: what its"
            f" figures show is not there:\n{listed}\nHint: `make run STUDY={study}` makes it."
        )
    else:
        how = _drawn(resolved)
    print(textwrap.fill(f"Figures  figures/{study}/: {how}", 80, subsequent_indent=" " * 9))


def redraw_figures(study: str, figures: Path = Path("figures")) -> None:
    """Ship a study or family anew from what is shipped: tables, figures, verdicts, manifest."""
    is_family = bool(read_shipped(figures / study).studies)
    redraw = ship_family.redraw_shipped_family if is_family else ship.redraw_shipped
    redraw(study, figures)


def _reads_what_is_shipped(resolved: Study | Family, read: Sequence[Path]) -> bool:
    """Whether a shipped family would be drawn of the very tables that it was shipped with."""
    if isinstance(resolved, Study) or any(path.is_relative_to(RESULTS) for path in read):
        return False
    folder = Path("figures", resolved.name)
    return not changed_shipped_files(folder, read_shipped(folder).inputs)


def _redrawn(study: str) -> str:
    """Draw a shipped study or family anew; how its files compare with those shipped, in words."""
    folder = Path("figures", study)
    shipped = read_shipped(folder)
    redraw_figures(study)
    made = read_shipped(folder).files
    changed = [name for name, digest in made.items() if shipped.files.get(name) != digest]
    how = f"not as shipped: {', '.join(changed)}" if changed else "all as shipped"
    source = "its shipped studies" if shipped.studies else "its source/"
    return f"{len(made)} files drawn of {source}, {how}"


def _drawn(resolved: Study | Family) -> str:
    """Let the workflow draw a study or family; what it drew, in words."""
    before = _modified(resolved.name)
    targets = ("tables", "figures")
    # A family has no rules but those of its outputs.
    allowed = [*snakemake_output_rules(), *targets] if isinstance(resolved, Study) else []
    snakemake(resolved.name, "--logger", "brief", *allowed, "--", *targets)
    after = _modified(resolved.name)
    drawn = {path.stem for path, at in after.items() if before.get(path) != at}
    return ", ".join(sorted(drawn)) or "nothing to draw again"


def _modified(study: str) -> dict[Path, int]:
    """When the files of a study's figures were written."""
    return {path: path.stat().st_mtime_ns for path in Path("figures", study).glob("*_*.*")}


def _tidy_files_shown(resolved: Study | Family) -> list[Path]:
    """The tidy files that the tables and figures of a study or family are drawn from."""
    if isinstance(resolved, Family):
        return resolved.tidy_files_of_all()
    specs = output_specs()
    reads: set[str] = set()
    for name in resolved.outputs:
        if name in specs:
            reads.update(specs[name].reads)
    shown: list[Path] = []
    for tidy, files in RunFolders(resolved).tidy_files().items():
        if tidy in reads:
            shown += [Path(file) for file in files]
    return shown
