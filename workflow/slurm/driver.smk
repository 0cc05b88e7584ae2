"""
What a driver does before its first job, and at the end of a dry run.
"""

import atexit
import subprocess


# The jobs that a killed driver left in SLURM's queue write the files that this one's jobs will write.
onstart:
    shell("python workflow/slurm/leftover.py")


@atexit.register
def say_cost():
    """After the jobs of a dry run, the GPU-hours of the whole study, where it asks for GPUs."""
    if workflow.dryrun and any(PARAMS.needs(model).of("train").gpus for model in STUDY.models):
        subprocess.run([sys.executable, "-m", "geosd.steps.plan", "--study", STUDY.name])
