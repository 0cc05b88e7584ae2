"""Where a job with one model computes: sampling, surveys and measurements of a checkpoint.

A training has a process for each of its GPUs, and asks
`geosd.training.processes.training_process_device`.
"""

import torch


def job_device() -> torch.device:
    """The first GPU that the process sees, or the CPU where it sees none."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
