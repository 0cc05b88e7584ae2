"""The library that pretends a GPU, compiled once, and a program started with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
TORCH = Path(torch.__file__).parent


def compiled(folder: Path) -> Path:
    """The library, compiled into a folder; the test is skipped where it cannot be."""
    if torch.version.cuda:
        pytest.skip(
            f"torch {torch.__version__} has CUDA's own hooks: no other GPU can be pretended"
        )
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler (g++): the pretended GPU cannot be built")
    library = folder / "libpretended_gpu.so"
    headers = [f"-I{TORCH / 'include'}", f"-I{TORCH / 'include/torch/csrc/api/include'}"]
    linked = [f"-L{TORCH / 'lib'}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{TORCH / 'lib'}"]
    source = str(HERE / "device_guard.cpp")
    command = [compiler, "-O0", "-shared", "-fPIC", "-std=c++20", *headers, source, "-o"]
    done = subprocess.run([*command, str(library), *linked], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return library


def run(library: Path, program: str, *arguments: str) -> None:
    """Run a program of this folder that believes in the GPU."""
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "PYTHONPATH": path,
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, str(HERE / program), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
