"""Judge the claims of the paper on a study."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from geosd.claims.computed_costs import computed_costs
from geosd.claims.evidence import Evidence
from geosd.claims.finding import findings_without_words
from geosd.claims.judging import judge_claims
from geosd.claims.ledger import ledger
from geosd.claims.staged import judge_in_stages
from geosd.cli.job import StepJob
from geosd.costs.update_operations import UpdateOperationsSize
from geosd.provenance.manifest import MANIFEST
from geosd.provenance.proof import prove
from geosd.reporting.claims_forest import plot_forest
from geosd.reporting.claims_page import claims_page_frame, write_claims_page
from geosd.reporting.figures import save
from geosd.scores.tidy import read_tidy_files

CLAIMS = "claims"
"""The name of a ledger's files."""


def main(study: str, tidy: tuple[Path, ...], out: Path, params: Path = Path("params.yaml")) -> None:
    """Judge every claim of the paper on one study: claims.md, claims.csv, claims.svg.

    Args:
        tidy: Its tidy files, each known by its own name.
    """
    job = StepJob("claims", params, study)
    tables, inputs = read_tidy_files(tidy), prove(tidy)
    written = write_study_claims(study, tables, job.settings, out)
    job.write_manifest(out, inputs, written, name=f"claims.{MANIFEST}")


def write_study_claims(
    study: str, tables: Mapping[str, pd.DataFrame], settings: Mapping[str, Any], folder: Path
) -> list[Path]:
    """Judge every claim on a study's tidy tables; the paths of claims.md, claims.csv, claims.svg.

    Of `tables`, by name, it needs scores, drift and consensus, and reads others that it knows.
    """
    evidence = _evidence_of(tables, settings)
    stages = settings.get("stages")
    if stages:
        findings = judge_in_stages(ledger(), evidence, **stages, models=settings["models"])
    else:
        findings = judge_claims(ledger(), evidence, settings["models"])
    if not settings.get("verdicts", True):
        findings = findings_without_words(findings)
    written = write_claims_page(findings, study, folder, kind=settings["kind"])
    return [*written, *save(plot_forest(claims_page_frame(findings)), folder, CLAIMS)]


def _evidence_of(tables: Mapping[str, pd.DataFrame], settings: Mapping[str, Any]) -> Evidence:
    """A study's evidence: its tidy tables, and what its settings say of sweeps, sizes and costs."""
    more: dict[str, Any] = {}
    if costs := settings["costs"]:
        update = UpdateOperationsSize(costs["problems"], costs["response_tokens"])
        more["costs"] = computed_costs(update, costs["top_k"], costs["blocks"], costs["subsample"])
    known = {field.name for field in fields(Evidence)}  # no claim reads the training curves
    return Evidence(
        privilege=settings["privilege"],
        rates_and_steps=settings["plane"],
        rates=settings.get("rates", {}),
        sizes=tuple(settings["ladder"]),
        **{name: table for name, table in tables.items() if name in known},
        **more,
    )
