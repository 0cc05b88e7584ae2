"""A study's needs of the machine: packages, GPUs, files, disk, SLURM; checked before it runs.

Every function takes values and returns a `checks.Check`; the step `doctor` collects them.
"""
