"""Write any table or draw any figure from tidy files; its own module says how."""

from pathlib import Path
from typing import Annotated

import tyro

from geosd.config import load, resolve_study, settings
from geosd.config.output_needs import unmet_needs
from geosd.provenance.proof import prove
from geosd.reporting.specs import output_specs, render_output_spec
from geosd.scores.tidy import read_tidy_files


def main(
    name: Annotated[str, tyro.conf.Positional],
    study: str,
    out: Path,
    tidy: tuple[Path, ...] = (),
    params: Path = Path("params.yaml"),
) -> None:
    """Render a table or a figure from tidy files.

    Args:
        name: Its name, that of its module in geosd.reporting, e.g. figure_frontier.
        tidy: The tidy files that it reads, each known by its own name.
    """
    resolved = resolve_study(load(params), study)
    shown = settings(name, resolved)
    for missing in unmet_needs(resolved, output_specs()[name]):
        raise ValueError(f"{name} {missing}, for {study}.\nHint: params.yaml says what it has.")
    reads, given = output_specs()[name].reads, dict.fromkeys(path.stem for path in tidy)
    if set(given) != set(reads):
        raise ValueError(
            f"{name} reads {_listed(reads)}, and was given {_listed(given)}.\nHint: let the"
            " workflow call this program, or give `--tidy` the files it reads."
        )
    tables = read_tidy_files(tidy)
    prove(tidy)
    render_output_spec(name, tables, shown, out)


def _listed(names: object) -> str:
    return ", ".join(f"{name}.csv" for name in names) or "no tidy file"
