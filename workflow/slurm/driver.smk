"""
What a driver does before its first job.
"""


# The jobs that a killed driver left in SLURM's queue write the files that this one's jobs will write.
onstart:
    shell("python workflow/slurm/leftover.py")
