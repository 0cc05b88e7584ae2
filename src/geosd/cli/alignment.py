"""Measure how much mass each checkpoint of a run gives to the tokens that the teacher prefers.

Writes `alignment.csv`: pi_0, each snapshot and the end of training, at the fixed states of the rule
`states`, in the type in which these were looked at. The manifest comes last.
"""

from functools import partial
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor
from tqdm import tqdm

from geosd.cli.job import StepJob
from geosd.evaluation.alignment import AlignmentRollout, alignment_mass
from geosd.evaluation.kept_batches import KeptBatches
from geosd.files import WEIGHTS, write_text
from geosd.json_lines import read_jsonl
from geosd.models.devices import job_device
from geosd.models.load_and_save import load_model, load_weights
from geosd.preemption import catch_sigterm
from geosd.provenance.manifest import read_manifest
from geosd.provenance.proof import prove, prove_checkpoint
from geosd.scores.tidy import COLUMNS
from geosd.training.resume_state import Snapshots


def main(
    study: str,
    model: str,
    variant: str,
    seed: int,
    base: Path,
    checkpoint: Path,
    states: Path,
    out: Path,
    scratch: Path,
    params: Path = Path("params.yaml"),
) -> None:
    """Measure how much mass the checkpoints of a run give to the teacher's ranks.

    Args:
        scratch: Folder of the checkpoints' masses that a killed job continues from.
    """
    job = StepJob("alignment", params, study, model, variant, seed=seed)
    settings = job.settings
    run = (model, variant, seed, job.draw)
    inputs = prove_checkpoint(base) | prove_checkpoint(checkpoint) | prove([states])
    snapshots = Snapshots(checkpoint / "snapshots", settings["snapshots"])
    on_the_way = [step for step in snapshots.steps if step < settings["steps"]]
    inputs |= prove(snapshots.path(step) for step in on_the_way)
    rollouts = read_jsonl(states, AlignmentRollout)
    precision = read_manifest(states.parent).get("precision", "float32")
    dtype, device = getattr(torch, precision), job_device()
    student, tokenizer = load_model(base, dtype)
    student.to(device)
    positions = sum(len(rollout.selected) for rollout in rollouts)

    def masses_after(step: int) -> dict[str, Tensor]:
        """Masses of the student after a step, whose weights take the place of those before."""
        if step == settings["steps"]:
            load_weights(student, checkpoint / WEIGHTS)
        elif step:
            load_weights(student, snapshots.path(step))
        pad_id = tokenizer.pad_token_id
        return alignment_mass(student, rollouts, pad_id, settings["problems"], settings["chunk"])

    rows = []
    with catch_sigterm() as stop_requested:
        identity = job.identity(inputs, precision=precision)
        batches = KeptBatches(scratch / "checkpoints", identity, stop_requested)
        for step in tqdm([0, *on_the_way, settings["steps"]], desc=f"{variant}, seed {seed}"):
            masses = batches.made(f"step_{step}", partial(masses_after, step))
            for ranking, mass in masses.items():
                for rank, value in enumerate(mass.tolist(), start=1):
                    rows.append((*run, step, ranking, rank, value, positions))
    table = pd.DataFrame(rows, columns=list(COLUMNS["alignment"]))
    write_text(out / "alignment.csv", table.to_csv(index=False, float_format="%.9g"))
    job.write_manifest(
        out,
        inputs,
        [out / "alignment.csv"],
        model=model,
        seed=seed,
        draw=job.draw,
        precision=precision,
    )
    batches.clear()
