"""Take a run that is the beginning of a longer one from that one, at the step at which it ends.

Its folder becomes what training it would have made, byte for byte, but for the manifest, whose
inputs are the longer run's.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from geosd.cli.job import StepJob
from geosd.files import copy_file, link_or_copy_file, write_json, write_text
from geosd.models.model_card import write_model_card
from geosd.provenance.manifest import read_manifest
from geosd.provenance.proof import WEIGHTS, prove
from geosd.scores.irregular_steps import count_irregular_steps

REWRITTEN = ("settings.json", "steps.csv", "manifest.json", WEIGHTS)
"""Files of a manifest in which a run differs from a longer one; in others it does not."""


def main(
    study: str,
    model: str,
    variant: str,
    seed: int,
    longer: Path,
    out: Path,
    params: Path = Path("params.yaml"),
) -> None:
    """Make a run that is the beginning of a longer one from that one.

    Args:
        longer: Folder of the longer run, with a snapshot after the last step of the shorter one.

    Raises:
        FileNotFoundError: The longer run has not kept those weights, or not measured there.
    """
    job = StepJob("early_stop", params, study, model, variant, seed=seed, out=out)
    settings = job.settings
    steps = settings["steps"]
    snapshot = longer / "snapshots" / f"step_{steps}.safetensors"
    measured = snapshot.with_suffix(".json")
    for file in (snapshot, measured):
        if not file.exists():
            raise FileNotFoundError(
                f"{file}: the run has not kept it after step {steps}.\nHint: the rule `train` makes"
                f" the run again and keeps it: delete {longer / WEIGHTS}."
            )
    recorded = read_manifest(longer)
    shared = [longer / n for n in recorded["outputs"] if "/" not in n and n not in REWRITTEN]
    steps_log = longer / "steps.csv"
    inputs = prove([snapshot, measured, steps_log])
    prove(shared)
    measurement = json.loads(measured.read_text(encoding="utf-8"))
    write_text(out / "steps.csv", _stopped_log(steps_log, steps, measurement))
    write_json(out / "settings.json", settings)
    for file in shared:
        copy_file(file, out / file.name)
    link_or_copy_file(snapshot, out / WEIGHTS)
    os.utime(out / WEIGHTS)  # made now: a workflow compares it with the longer run's own weights
    kept = ("model", "seed", "ranks", "precision", "sampler", "card")
    same = {key: recorded[key] for key in kept}
    if "kfac" in recorded:
        same["kfac"] = recorded["kfac"]
    same["irregular_steps"] = count_irregular_steps(out / "steps.csv", steps)
    job.write_manifest(out, inputs, **same, draw=job.draw, snapshots=[])
    base = job.study.section("base", model)
    write_model_card(out, model=model, seed=seed, settings=settings, base=base, **recorded["card"])


def _stopped_log(log: Path, steps: int, measurement: Mapping[str, float]) -> str:
    """The first steps of a longer run's log, and the measurement after the last of them.

    Columns that only later steps have are left out, as a run of so many steps has none.
    """
    table = pd.read_csv(log, dtype=object, keep_default_na=False, na_values=[""])
    words = {name: str(value) for name, value in measurement.items()}
    last = pd.DataFrame([{"step": str(steps), **words}], columns=table.columns)
    stopped = pd.concat([table.head(steps), last]).dropna(axis=1, how="all")
    return stopped.to_csv(index=False, lineterminator="\n")
