"""`make test-core`: install the core into an environment of its own, beside TRL, and run both.

    python tests/core/core_and_trl.py FOLDER [PIP_ARGS...]

Makes a virtual environment in FOLDER, installs torch at the version of envs/laptop.txt, then this
repository, then envs/trl.txt. Prints what the core added, and fails if that is more than geosd
itself. Last come the other packages of envs/laptop.txt, the tests of GeoSD inside TRL's trainers,
which need the training loop to compare with, and those of the loop's trainings by peft.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[2]
LAPTOP, TRL = ROOT / "envs/laptop.txt", ROOT / "envs/trl.txt"

BOTH = """
import time
import torch
start = time.perf_counter()
import geosd
from geosd.geometry import hellinger
from geosd.optim.kfac import KFAC
took = 1e3 * (time.perf_counter() - start)
print(f"geosd {geosd.__version__} loads in {took:.0f} ms after torch")
import trl
from trl import SFTTrainer
from transformers import Qwen3Config, Qwen3ForCausalLM

torch.manual_seed(0)
model = Qwen3ForCausalLM(Qwen3Config(
    vocab_size=32, hidden_size=16, intermediate_size=24, num_hidden_layers=1,
    num_attention_heads=2, num_key_value_heads=1, head_dim=8,
))
kfac = KFAC(model, blocks=2)
ids = torch.randint(0, 32, (2, 6))
logits = model(input_ids=ids).logits
hellinger(logits, logits.detach().roll(1, -1)).mean().backward()
kfac.step()
assert all(parameter.grad.isfinite().all() for parameter in kfac.parameters())
print(f"and takes a K-FAC step beside trl {trl.__version__}")
"""


def main(folder: Path, pip_args: list[str]) -> None:
    """Make the environment and check the core in it."""
    venv.create(folder, with_pip=True, clear=True)
    python = folder / "bin/python"

    def pip(*arguments: str) -> str:
        command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout

    def installed() -> set[str]:
        return {each["name"].lower() for each in json.loads(pip("list", "--format=json"))}

    def megabytes() -> float:
        files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
        return sum(path.stat().st_size for path in files) / 1e6

    pins = LAPTOP.read_text().splitlines()
    (torch,) = (line.rstrip("\\ ") for line in pins if line.startswith("torch=="))
    pip("install", "-q", *pip_args, torch)
    before, size = installed(), megabytes()
    with TemporaryDirectory() as copy:  # setuptools leaves its build folder beside the sources
        shutil.copytree(ROOT / "src", f"{copy}/src", ignore=shutil.ignore_patterns("*.egg-info"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, copy)
        pip("install", "-q", *pip_args, copy)
    added = installed() - before
    print(f"the core adds {len(added)} package and {megabytes() - size:.1f} MB to torch")
    if added != {"geosd"}:
        sys.exit(f"The core brought {sorted(added)}.\nHint: a new dependency belongs to an extra.")
    locked = ("install", "-q", *pip_args, "--no-deps", "--require-hashes", "-r")
    pip(*locked, str(TRL))
    subprocess.run([python, "-I", "-c", BOTH], check=True)
    pip(*locked, str(LAPTOP))
    tests = ("tests/integrations", "tests/training/test_lora.py")
    subprocess.run([python, "-m", "pytest", *tests], check=True, cwd=ROOT)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
