"""Judge every claim of the paper on a study: claims.md and claims.csv."""

from __future__ import annotations

from pathlib import Path

from geosd.analysis import agreement as agreement_table
from geosd.analysis import alignment as alignment_table
from geosd.analysis import drift as drift_table
from geosd.analysis import drift_over_steps as path_table
from geosd.analysis import scores as score_table
from geosd.analysis import states as state_table
from geosd.analysis.claimed_costs import quantities
from geosd.analysis.claims import ledger
from geosd.analysis.cost import Update
from geosd.analysis.evidence import Evidence
from geosd.analysis.verdicts import evaluate
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.reporting.table_claims import write
from geosd.steps import begin


def main(
    study: str,
    scores: Path,
    drift: Path,
    consensus: Path,
    out: Path,
    drift_over_steps: Path | None = None,
    states: tuple[Path, ...] = (),
    alignment: tuple[Path, ...] = (),
    params: Path = Path("params.yaml"),
) -> None:
    """Judge every claim of the paper.

    Args:
        study: Name of the study.
        scores: Tidy scores.
        drift: Tidy drift.
        consensus: What samples agree on.
        out: Folder of `claims.md` and `claims.csv`.
        drift_over_steps: Drift over steps, where the study has it.
        states: The states of each model, where the study has them.
        alignment: Mass on the teacher's ranks of each run, where the study has it.
        params: The configuration.
    """
    settings = settings_of("claims", resolve(load(params), study))
    more = {}
    if drift_over_steps:
        more["path"] = path_table.read(drift_over_steps)
    if states:
        more["states"] = state_table.read(states)
    if alignment:
        more["alignment"] = alignment_table.read(alignment)
    if costs := settings["costs"]:
        update = Update(costs["problems"], costs["response_tokens"])
        more["costs"] = quantities(update, costs["top_k"], costs["blocks"], costs["subsample"])
    evidence = Evidence(
        scores=score_table.read(scores),
        drift=drift_table.read(drift),
        agreement=agreement_table.read(consensus),
        privilege=settings["privilege"],
        plane=settings["plane"],
        ladder=tuple(settings["ladder"]),
        **more,
    )
    write(evaluate(ledger(), evidence, settings["models"]), study, out)


if __name__ == "__main__":
    begin(main)
