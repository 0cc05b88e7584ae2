"""Measure how much mass each checkpoint of a run gives to the tokens that the teacher prefers.

Writes `alignment.csv`: pi_0, each snapshot and the end of training, at the fixed states of the rule
`states`. The manifest comes last.
"""

from pathlib import Path

import pandas as pd
from tqdm import tqdm

from geosd.cli.job import Job
from geosd.evaluation.alignment import ProbeRollout, mass_on_ranks
from geosd.files import write_text
from geosd.json_lines import read_jsonl
from geosd.models.load_and_save import load_model, load_weights
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
    params: Path = Path("params.yaml"),
) -> None:
    """Measure how much mass the checkpoints of a run give to the teacher's ranks."""
    job = Job("alignment", params, study, model, variant, seed=seed)
    settings = job.settings
    run = (model, variant, seed, job.draw)
    inputs = prove_checkpoint(base) | prove_checkpoint(checkpoint) | prove([states])
    snapshots = Snapshots(checkpoint / "snapshots", settings["snapshots"])
    on_the_way = [step for step in snapshots.steps if step < settings["steps"]]
    inputs |= prove(snapshots.path(step) for step in on_the_way)
    rollouts = read_jsonl(states, ProbeRollout)
    student, tokenizer = load_model(base)
    positions = sum(len(rollout.selected) for rollout in rollouts)
    rows = []
    for step in tqdm([0, *on_the_way, settings["steps"]], desc=f"{variant}, seed {seed}"):
        if step == settings["steps"]:
            student, _ = load_model(checkpoint)
        elif step:
            load_weights(student, snapshots.path(step))
        masses = mass_on_ranks(
            student, rollouts, tokenizer.pad_token_id, settings["problems"], settings["chunk"]
        )
        for ranking, mass in masses.items():
            for rank, value in enumerate(mass.tolist(), start=1):
                rows.append((*run, step, ranking, rank, value, positions))
    table = pd.DataFrame(rows, columns=list(COLUMNS["alignment"]))
    write_text(out / "alignment.csv", table.to_csv(index=False, float_format="%.9g"))
    job.write_manifest(out, inputs, [out / "alignment.csv"], model=model, seed=seed, draw=job.draw)
