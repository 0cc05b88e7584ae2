"""Judge every claim of the paper on a study: claims.md and claims.csv."""

from __future__ import annotations

from pathlib import Path

from geosd.claims.computed_costs import computed_costs
from geosd.claims.evidence import Evidence
from geosd.claims.ledger import ledger
from geosd.claims.verdicts import judge_claims
from geosd.costs.update_operations import UpdateSize
from geosd.provenance.manifest_file import MANIFEST
from geosd.provenance.proof import prove
from geosd.reporting.claims_page import write_ledger
from geosd.scores.tidy_files import read_tidy
from geosd.steps import begin
from geosd.steps.job import Job


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
    """Judge every claim of the paper on one study: claims.md and claims.csv.

    Args:
        study: Name of the study.
        scores: Tidy scores.
        drift: Tidy drift.
        consensus: What samples agree on.
        out: Folder of `claims.md`, `claims.csv` and their manifest.
        drift_over_steps: Drift over steps, where the study has it.
        states: The states of each model, where the study has them.
        alignment: Mass on the teacher's ranks of each run, where the study has it.
        params: The configuration.
    """
    job = Job("claims", params, study)
    settings = job.settings
    optional = {"drift_over_steps": drift_over_steps, "states": states, "alignment": alignment}
    more = {name: read_tidy(name, files) for name, files in optional.items() if files}
    if costs := settings["costs"]:
        update = UpdateSize(costs["problems"], costs["response_tokens"])
        more["costs"] = computed_costs(update, costs["top_k"], costs["blocks"], costs["subsample"])
    evidence = Evidence(
        scores=read_tidy("scores", scores),
        drift=read_tidy("drift", drift),
        consensus=read_tidy("consensus", consensus),
        privilege=settings["privilege"],
        rates_and_steps=settings["plane"],
        sizes=tuple(settings["ladder"]),
        **more,
    )
    tidy = [scores, drift, consensus, *filter(None, [drift_over_steps]), *states, *alignment]
    inputs = prove(tidy)
    findings = judge_claims(ledger(), evidence, settings["models"])
    written = write_ledger(findings, study, out, kind=settings["kind"])
    job.write_manifest(out, inputs, written, name=f"claims.{MANIFEST}")


if __name__ == "__main__":
    begin(main)
