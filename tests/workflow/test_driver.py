"""What the driver does with Snakemake itself."""

from __future__ import annotations

from dataclasses import replace

JOBS = 10
SNAKEFILE = f"""
include: "workflow/slurm/driver.smk"

rule all:
    input: [f"done/{{number}}" for number in range({JOBS})]

rule one:
    output: "done/{{number}}"
    shell: "sleep 0.6; touch {{output}}"
"""


def test_ready_jobs_are_looked_at_when_a_job_ends_and_not_by_the_clock(untouched, root, tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow/slurm").symlink_to(root / "workflow/slurm")
    tiny = replace(untouched, folder=tmp_path)
    printed = tiny.snakemake("--cores", "1", "--scheduler", "greedy", "--verbose")
    assert JOBS <= printed.count("Ready jobs:") <= JOBS + 2
