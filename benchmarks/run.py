"""`make bench`: run the benchmarks one after another and join their results.

    python benchmarks/run.py --only steps generation

On a quiet machine; a busy one makes CPU seconds up to half as long again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# section -> (program, its arguments)
SECTIONS = {
    "steps": ("steps.py", ["--trl", "{trl}"]),
    "kfac": ("kfac.py", []),
    "generation": ("generation.py", ["--vllm", "{vllm}"]),
    "divergence": ("divergence.py", ["--trl", "{trl}"]),
    "scaling": ("scaling.py", []),
    "workflow": ("workflow.py", []),
    "floors": ("floors.py", []),
}
LONG = {
    "decoding": ("decoding.py", ["--qwen", "{qwen}"]),
    "smollm2": ("steps.py", ["--trl", "{trl}", "--smollm2", "--models"]),
    "long": ("workflow.py", ["--long"]),
}


def main() -> int:
    """Run the sections; how many of them failed."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--only", nargs="*", help="sections; none: all but the long ones")
    options.add_argument("--long", action="store_true", help="the long ones too")
    options.add_argument("--trl", default=".venv-trl-bench/bin/python")
    options.add_argument("--vllm", default=".venv-vllm/bin/python")
    options.add_argument("--qwen", default="models/qwen05", help="folder of Qwen's GGUF file")
    options.add_argument("--out", type=Path, default=Path("docs/measurements"))
    options.add_argument("--page", type=Path, default=Path("benchmarks/README.md"))
    options.add_argument("--smoke", action="store_true", help="smallest sizes: do they run?")
    given = options.parse_args()
    known = {**SECTIONS, **LONG}
    names = given.only or [*SECTIONS, *(LONG if given.long else ())]
    if unknown := set(names) - set(known):
        sys.exit(
            f"Unknown sections: {', '.join(sorted(unknown))}.\nHint: allowed are"
            f" {', '.join(known)}."
        )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    failed, results = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for name in names:
            program, words = known[name]
            out, began = Path(scratch) / f"{name}.json", time.monotonic()
            places = {"trl": given.trl, "vllm": given.vllm, "qwen": given.qwen}
            arguments = [word.format(**places) for word in words]
            arguments += ["--smoke"] * given.smoke
            command = [sys.executable, str(ROOT / "benchmarks" / program), "--out", str(out)]
            done = subprocess.run([*command, *arguments], env=environment)
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
            (failed if done.returncode else results).append(name)
        if results:
            files = [str(Path(scratch) / f"{name}.json") for name in results]
            page = ["--page", str(given.page)] if given.page.exists() else []
            report = [sys.executable, str(ROOT / "benchmarks/report.py"), *files]
            subprocess.run([*report, "--out", str(given.out), *page], check=True)
    if failed:
        print(f"Failed: {', '.join(failed)}", file=sys.stderr)
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
