"""Report of a compute node: GPUs, a file of the project's folder, the clock. Needs no package.

    python node_report.py FILE

prints one JSON object on the last line. The step `doctor` runs it in a job of each partition.
"""

import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path


def node_visible_gpus(environment: Mapping[str, str]) -> int:
    """How many GPUs of its node a process may use: those of CUDA_VISIBLE_DEVICES, else all."""
    listed = environment.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        return len([device for device in listed.split(",") if device.strip()])
    if not shutil.which("nvidia-smi"):
        return 0
    done = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True)
    return len([line for line in done.stdout.splitlines() if line.startswith("GPU ")])


def _torch_gpus() -> list[str] | None:
    """Names of the GPUs of a node that torch can use; None where torch is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        return []
    return [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]


def main(file: Path) -> None:
    """Print the report of this node as JSON: host, time, the file's text, GPUs."""
    began = time.time()
    gpus = node_visible_gpus(os.environ)
    report = {
        "host": os.environ.get("SLURMD_NODENAME", socket.gethostname()),
        "time": began,
        "text": file.read_text(encoding="utf-8") if file.is_file() else None,
        "gpus": gpus,
        "torch": _torch_gpus() if gpus else [],
    }
    print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
