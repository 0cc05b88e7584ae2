"""Judge every claim of the paper on a study: claims.md and claims.csv."""

from __future__ import annotations

from pathlib import Path

import tyro

from geosd.analysis import drift as drift_table
from geosd.analysis import scores as score_table
from geosd.analysis.claims import ledger
from geosd.analysis.verdicts import evaluate
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.table_claims import write


def main(
    study: str, scores: Path, drift: Path, out: Path, params: Path = Path("params.yaml")
) -> None:
    """Judge every claim of the paper.

    Args:
        study: Name of the study.
        scores: Tidy scores.
        drift: Tidy drift.
        out: Folder of `claims.md` and `claims.csv`.
        params: The configuration.
    """
    settings = settings_of("claims", resolve(load(params), study))
    findings = evaluate(
        ledger(), score_table.read(scores), drift_table.read(drift), settings["models"]
    )
    write(findings, study, out)


if __name__ == "__main__":
    tyro.cli(main)
