"""The program of the rule `train` when a signal stops it, and when accelerate starts it."""

import os
import signal
import subprocess
import sys

import pytest
import yaml
from cases import until

LONG = 20
"""Enough steps for a signal to arrive before the last one."""


TWO = (
    "accelerate.commands.launch",
    "--multi_gpu",
    "--num_processes",
    "2",
    "--main_process_port",
    "0",
    "-m",
)


def params_of(small, folder, steps):
    """The small study with another number of steps."""
    values = yaml.safe_load(small.shared["params"].read_text())
    values["studies"]["quick"]["training"]["steps"] = steps
    params = folder / "params.yaml"
    params.write_text(yaml.safe_dump(values))
    return params


def command(small, out, params, launcher=(), python=sys.executable):
    """The command by which the workflow starts the program."""
    scratch = out.with_name(out.name + "-scratch")
    options = small.training_options(params=params, out=out, scratch=scratch)
    return [python, "-m", *launcher, "geosd", "train", *options]


def until_it_has_logged(out, process):
    """Wait until the run has done its first step."""
    log = out.with_name(out.name + "-scratch") / "log"
    until(lambda: any(log.rglob("*.tsv")), process)


@pytest.mark.slow
def test_sigterm_ends_a_run_after_its_step_and_the_next_start_ends_like_one_undisturbed(
    small, tmp_path
):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    params, out = params_of(small, tmp_path, LONG), tmp_path / "stopped"
    small.trained(tmp_path / "whole", params=params)
    process = subprocess.Popen(
        command(small, out, params), env=environment, stderr=subprocess.PIPE, text=True
    )
    until_it_has_logged(out, process)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 75
    assert "asked to stop after" in stderr and "Traceback" not in stderr
    assert (out.with_name("stopped-scratch") / "state.pt").exists()
    assert not (out / "model.safetensors").exists()
    small.trained(out, params=params)
    for name in ("model.safetensors", "steps.csv"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert not (out.with_name("stopped-scratch") / "state.pt").exists()


@pytest.mark.slow
def test_accelerate_starts_the_same_program_and_the_first_rank_writes(
    small, launched_python, tmp_path
):
    from safetensors.torch import load_file

    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    params, out_double = params_of(small, tmp_path, 4), tmp_path / "two"
    subprocess.run(
        command(small, out_double, params, TWO, launched_python),
        env=environment,
        check=True,
        timeout=300,
    )
    out_single = small.trained(tmp_path / "one", params=params)
    assert sorted(p.name for p in out_double.iterdir()) == sorted(
        p.name for p in out_single.iterdir()
    )
    base, single, double = (
        load_file(f / "model.safetensors") for f in (small.base, out_single, out_double)
    )
    assert double.keys() == single.keys()
    apart = sum((double[name] - single[name]).square().sum() for name in single).sqrt()
    moved = sum((single[name] - base[name].float()).square().sum() for name in single).sqrt()
    # AdamW moves a weight of vanishing gradient by the rate, in a direction that rounding decides.
    assert apart < 1e-2 * moved
