"""Judge every claim of the paper on a study: claims.md and claims.csv."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from geosd.claims.claim import StudyKind
from geosd.claims.computed_costs import quantities
from geosd.claims.evidence import Evidence
from geosd.claims.ledger import ledger
from geosd.claims.verdicts import evaluate
from geosd.config import load, resolve
from geosd.config import settings as settings_of
from geosd.costs.update_cost import UpdateSize
from geosd.reporting.table_claims import write
from geosd.scores import alignment_table as alignment_table
from geosd.scores import consensus_table as agreement_table
from geosd.scores import drift_curves as path_table
from geosd.scores import drift_table as drift_table
from geosd.scores import score_table as score_table
from geosd.scores import state_table as state_table
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
        more["drift_over_steps"] = path_table.read(drift_over_steps)
    if states:
        more["states"] = state_table.read(states)
    if alignment:
        more["alignment"] = alignment_table.read(alignment)
    if costs := settings["costs"]:
        update = UpdateSize(costs["problems"], costs["response_tokens"])
        more["costs"] = quantities(update, costs["top_k"], costs["blocks"], costs["subsample"])
    evidence = Evidence(
        scores=score_table.read(scores),
        drift=drift_table.read(drift),
        consensus=agreement_table.read(consensus),
        privilege=settings["privilege"],
        rates_and_steps=settings["plane"],
        sizes=tuple(settings["ladder"]),
        **more,
    )
    findings = evaluate(ledger(), evidence, settings["models"])
    write(findings, study, out, kind=study_kind(study, settings))


def study_kind(study: str, settings: Mapping[str, Any]) -> str:
    """What a study is designed for: its key `kind`, else the ending of its name."""
    ending = study.rpartition("_")[2]
    return settings.get("kind") or (ending if ending in get_args(StudyKind) else "main")


if __name__ == "__main__":
    begin(main)
