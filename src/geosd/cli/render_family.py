"""Write any table, figure or ledger over the studies of a family; its own module says how."""

from pathlib import Path
from typing import Annotated

import tyro

from geosd.config import load, resolve_family
from geosd.config.family import study_of_family_file
from geosd.provenance.proof import prove
from geosd.reporting.specs import family_specs, render_output_spec
from geosd.scores.tidy import read_tidy


def main(
    name: Annotated[str, tyro.conf.Positional],
    family: str,
    out: Path,
    tidy: tuple[Path, ...] = (),
    params: Path = Path("params.yaml"),
) -> None:
    """Render an output of a family from the tidy files of its studies.

    Args:
        name: Its name, that of its module in geosd.reporting, e.g. figure_transfer.
        tidy: The tidy files that it reads, each known by its own name and the study by its folder.

    Raises:
        ValueError: The files are others than those that the output reads.
    """
    resolved = resolve_family(load(params), family)
    given = {(path.name.partition(".")[0], study_of_family_file(path)): path for path in tidy}
    reads = family_specs()[name].reads
    wanted = {(table, study) for table in reads for study in resolved.studies}
    missing = sorted(wanted ^ given.keys())
    if missing:
        table, study = missing[0]
        raise ValueError(
            f"{name} reads {', '.join(reads)} of {', '.join(resolved.studies)}; {table} of {study}"
            " is missing, or is too much.\nHint: let the workflow call this program, or give"
            " `--tidy` the files it reads."
        )
    prove(tidy)
    tables = {
        table: {study: read_tidy(table, given[table, study]) for study in resolved.studies}
        for table in reads
    }
    render_output_spec(name, tables, resolved.settings(name), out)
