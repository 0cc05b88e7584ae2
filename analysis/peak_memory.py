"""Peak memory of a distillation step over a real vocabulary: a chunk of logits at a time, or all.

    python analysis/peak_memory.py            prints the table of docs/scaling.md
    python analysis/peak_memory.py 2048 1024  one row: 2,048 response tokens, 1,024 at a time

Each row is a process of its own; its peak is the kernel's count of resident memory, less what the
process held before the step. Only the output head is real: 4,096 hidden states of width 64 take
the place of a model's, because logits are what is to be measured.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

VOCABULARY, WIDTH, TOP_K = 151_936, 64, 1024
ROWS = [(1024, 1024), (2048, 2048), (2048, 1024), (4096, 4096), (4096, 1024), (4096, 256)]
"""(response tokens, tokens whose logits are held at once); equal numbers are the naive form."""


def resident() -> float:
    """Peak resident memory of this process so far, in GB.

    Linux's ru_maxrss starts at the size of the process that started this one; VmHWM does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(s for s in status.read_text().splitlines() if s.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def step(tokens: int, chunk: int) -> float:
    """Peak memory in GB of GeoSD's loss and gradient: student, teacher and anchor."""
    import torch
    from torch import nn

    from geosd.objectives.objective import build_objective
    from geosd.training.chunked_logits import ChunkedLogits, chunked_position_scalars

    torch.set_num_threads(1)
    torch.manual_seed(0)
    models = {}
    for name in ("student", "teacher", "anchor"):
        models[name] = nn.Module()
        models[name].lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        models[name].requires_grad_(name == "student")
    hidden = {name: torch.randn(tokens, WIDTH) for name in models}
    hidden["student"].requires_grad_()
    views = {name: ChunkedLogits(models[name], hidden[name]) for name in models}
    token = torch.randint(VOCABULARY, (tokens,))
    models["student"].lm_head.weight.grad = torch.zeros(VOCABULARY, WIDTH)
    before = resident()
    local = chunked_position_scalars(build_objective("geosd"), views, token, TOP_K, chunk)
    local["loss"].mean().backward()
    return resident() - before


def main() -> None:
    """One row, or all of them as a table."""
    if sys.argv[1:]:
        print(f"{step(*map(int, sys.argv[1:])):.2f}")
        return
    print("| response tokens | logits held at once | one fp32 logit tensor, GB | peak, GB |")
    print("|---:|---:|---:|---:|")
    for tokens, chunk in ROWS:
        row = [sys.executable, __file__, str(tokens), str(chunk)]
        peak = subprocess.run(row, check=True, capture_output=True, text=True).stdout.strip()
        held = "all" if chunk == tokens else f"{chunk:,}"
        print(f"| {tokens:,} | {held} | {tokens * VOCABULARY * 4 / 1e9:.2f} | {peak} |", flush=True)


if __name__ == "__main__":
    main()
