"""The placement of the ladder's last rung, halved: trainers and a worker on two nodes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file

from geosd.config import load

ROOT = Path(__file__).parents[2]
SRUN = """#!{python}
# Starts a command once for each requested node, all on this machine.
import os, subprocess, sys
options = [word for word in sys.argv[1:] if word.startswith("--") and "=" in word]
nodes = int(dict(word.split("=") for word in options)["--nodes"])
command = sys.argv[1 + len(options):]
job = {{**os.environ, "SLURM_JOB_NODELIST": "node[1-2]"}}
tasks = [subprocess.Popen(command, env={{**job, "SLURM_NODEID": str(i)}}) for i in range(nodes)]
sys.exit(max(task.wait() for task in tasks))
"""
SCONTROL = "#!/bin/sh\necho 127.0.0.1\necho 127.0.0.1\n"


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """A SLURM job of several nodes, all of which are this machine."""
    for name, text in {"srun": SRUN.format(python=sys.executable), "scontrol": SCONTROL}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.mark.slow
def test_half_the_processes_of_qwen3_32b_on_two_nodes_train_what_one_process_does(
    small, slurm, launched_python, tmp_path
):
    planned = load(ROOT / "params.yaml").resources_of("qwen3-32b").train
    processes, workers, nodes = planned.processes // 2, planned.inference_gpus // 2, planned.nodes
    assert workers > 1 and nodes > 1  # or this is no test of either
    values = yaml.safe_load(small.shared["params"].read_text())
    values["studies"]["quick"]["training"] |= {"steps": 2, "learning_rate": 1e-3}
    params = tmp_path / "params.yaml"
    params.write_text(yaml.safe_dump(values))
    given = small.training_options(params=params)

    several, scratch = tmp_path / "several", tmp_path / "scratch"
    launcher = [sys.executable, str(ROOT / "workflow/scripts/launch.py"), "--gpus", "0"]
    launcher += ["--nodes", str(nodes), "--processes", str(processes)]
    launcher += ["--scratch", str(scratch), "--", launched_python, "-m", "geosd", "train"]
    where = ["--out", str(several), "--scratch", str(scratch), "--workers", str(workers)]
    subprocess.run([*launcher, *given, *where], check=True, timeout=500)
    single = small.trained(tmp_path / "single", params=params)
    assert json.loads((several / "manifest.json").read_text())["ranks"] == processes - workers
    weights = [load_file(folder / "model.safetensors") for folder in (single, several, small.base)]
    expected, found, base = weights
    (single_loss, several_loss) = (losses(out / "steps.csv") for out in (single, several))
    assert several_loss == pytest.approx(single_loss, rel=1e-5)
    # AdamW makes a step of its own of a gradient as small as rounding: of one weight in 80,000.
    apart = torch.cat([(expected[name] - found[name]).abs().flatten() for name in expected])
    moved = torch.cat([(expected[name] - base[name]).abs().flatten() for name in expected])
    assert (apart > 2e-5).double().mean() < 1e-4 and (moved > 2e-5).double().mean() > 0.9


def losses(steps):
    """The losses of a step log; its last row is a measurement without one."""
    return pd.read_csv(steps)["loss/total"].dropna().tolist()
