"""What made-up clusters lack: partitions, GPUs, a shared folder, a common clock."""

from __future__ import annotations

import os
import time

import pytest
import yaml

from geosd.prerequisites import slurm
from geosd.prerequisites.slurm import (
    SlurmRequest,
    SlurmSite,
    check_slurm_clock,
    check_slurm_folder,
    check_slurm_gpus,
)

SITE = SlurmSite(
    None, "h100", 8, 10, 2, 20, 1440, {"cpu": {"max_runtime": 1440}, "gpu": {"max_gpu": 4}}
)
TRAIN = SlurmRequest(3, 384000, 1440, 1)
LISTING = """Configuration data as of 2026-11-23T07:00:00
GresTypes               = gpu
JobRequeue              = 1
MinJobAge               = 300 sec
SLURM_VERSION           = 22.05.8
"""

SRUN = '#!/bin/sh\necho "$@" > "$OPTIONS"\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n'


@pytest.fixture
def command(tmp_path, monkeypatch):
    """Put a made-up command into the PATH."""

    def put(name, text):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)

    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return put


def states(checks):
    return {check.subject: check.state for check in checks}


def test_a_cluster_that_has_all_is_ok():
    checks = slurm.check_slurm_settings(slurm.cluster_settings(LISTING), SITE, gpus=3)
    assert set(states(checks).values()) == {"ok"}


def test_a_cluster_without_gpus_is_no_use_to_a_study_that_asks_for_some():
    values = slurm.cluster_settings(LISTING.replace("= gpu", "= (null)"))
    assert states(slurm.check_slurm_settings(values, SITE, gpus=3))["SLURM's GPUs"] == "missing"
    assert "SLURM's GPUs" not in states(slurm.check_slurm_settings(values, SITE, gpus=0))


def test_a_job_must_be_remembered_for_three_looks():
    values = slurm.cluster_settings(LISTING.replace("300 sec", "59 sec"))
    [check] = [c for c in slurm.check_slurm_settings(values, SITE, 0) if "memory" in c.subject]
    assert check.state == "missing" and "check_seconds: 19 " in check.cure


def test_partitions_of_the_site_must_exist():
    assert slurm.check_partitions(["cpu", "gpu"], ["cpu", "gpu", "long"]).state == "ok"
    check = slurm.check_partitions(["cpu", "a100"], ["cpu", "gpu"])
    assert check.state == "missing" and check.found.startswith("a100") and "cpu, gpu" in check.cure


def test_a_job_goes_where_snakemakes_plugin_sends_it(tmp_path):
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(SITE._asdict()))
    file = tmp_path / "site.yaml"
    assert slurm.choose_partition(TRAIN, SITE, file) == "gpu"
    assert slurm.choose_partition(SlurmRequest(0, 2000, 60, 1), SITE, file) == "cpu"
    assert slurm.choose_partition(TRAIN._replace(gpus=8), SITE, file) is None


def test_the_words_of_sbatch_say_why_a_job_would_be_refused(command):
    command("sbatch", "#!/bin/sh\necho 'Requested node configuration is not available' >&2\nexit 1")
    check = slurm.check_slurm_request("qwen3-8b/train", TRAIN, SITE, "gpu")
    assert check.state == "missing" and "node configuration is not available" in check.found
    command("sbatch", "#!/bin/sh\nexit 0")
    assert slurm.check_slurm_request("qwen3-8b/train", TRAIN, SITE, "gpu").state == "ok"


def node(command, tmp_path, monkeypatch, devices):
    """The report of a made-up node: this machine, by a made-up srun."""
    command("srun", SRUN)
    monkeypatch.setenv("OPTIONS", str(tmp_path / "srun_options"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", devices)
    (tmp_path / "token").write_text("abc")
    request = TRAIN._replace(gpus=len([*filter(None, devices.split(","))]))
    return slurm.slurm_node_report(request, SITE, "gpu", tmp_path, tmp_path / "token")


def test_a_node_reports_what_it_sees(command, tmp_path, monkeypatch):
    seen, words = node(command, tmp_path, monkeypatch, "")
    assert (seen["gpus"], seen["torch"], seen["text"], words) == (0, [], "abc", "")
    srun_options = (tmp_path / "srun_options").read_text()
    assert "--partition=gpu" in srun_options and f"--immediate={slurm.WAIT_S}" in srun_options
    assert check_slurm_folder("gpu", seen, "abc").state == "ok"
    assert check_slurm_folder("gpu", seen, "xyz").state == "missing"
    assert check_slurm_clock("gpu", seen).state == "ok"


def test_a_node_that_does_not_come_is_no_report(command, tmp_path):
    command("srun", "#!/bin/sh\necho 'Unable to allocate resources' >&2\nexit 1")
    assert slurm.slurm_node_report(TRAIN, SITE, "gpu", tmp_path, tmp_path / "token") == (
        None,
        "Unable to allocate resources",
    )


@pytest.mark.parametrize(("shift", "state"), [(0, "ok"), (-60, "missing"), (60, "missing")])
def test_a_clock_that_differs_is_seen_from_both_sides(shift, state):
    now = time.time()
    report = {"host": "n1", "time": now + shift, "asked_at": now - 5, "told_at": now + 5}
    assert check_slurm_clock("gpu", report).state == state


def test_a_job_must_see_the_requested_gpus_and_so_must_torch():
    seen = {"host": "n1", "gpus": 2, "torch": ["H100", "H100"]}
    assert check_slurm_gpus("gpu", 2, seen).state == "ok"
    assert check_slurm_gpus("gpu", 4, seen).state == "missing"
    broken = check_slurm_gpus("gpu", 2, {**seen, "torch": []})
    assert broken.state == "missing" and "torch can use 0" in broken.found
    assert check_slurm_gpus("gpu", 2, {**seen, "torch": None}).state == "ok"  # no torch to ask
