"""What the driver does with Snakemake itself."""

from __future__ import annotations

import subprocess
import sys

JOBS = 10
SNAKEFILE = f"""
import sys

PARAMS = STUDY = None

include: "workflow/slurm/driver.smk"

rule all:
    input: [f"done/{{number}}" for number in range({JOBS})]

rule one:
    output: "done/{{number}}"
    shell: "sleep 0.6; touch {{output}}"
"""


def test_ready_jobs_are_looked_at_when_a_job_ends_and_not_by_the_clock(root, tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow/slurm").symlink_to(root / "workflow/slurm")
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "1", "--scheduler", "greedy", "--verbose"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Ready jobs:") <= JOBS + 2
