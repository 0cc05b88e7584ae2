"""The decode step of a small model, compiled once per architecture and machine (AOTInductor).

The compiled step reads the model's own weights wherever they lie, so training in place is seen. It
is fp32 on a CPU. A compiled file is a program: it is made on this machine, kept in a folder that
its owner alone may write (GEOSD_CACHE, or geosd in XDG_CACHE_HOME or ~/.cache), loaded only if its
hash is the one that was noted when it was made, and never part of results.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from geosd.files import sha256, sync, write_text
from geosd.sampling.decode_step import ATTENTION, Columns, next_logits
from geosd.sampling.key_value_cache import KeyValueCache

SOURCES = ("compiled_step.py", "decode_step.py", "key_value_cache.py", "decode_attention.cpp")
STEP, KERNEL, NOTE = "step.pt2", "attention.so", "note.json"
COMPILER = "g++"
# Those of -ffast-math that let loops vectorise; -ffast-math itself would change how the process
# that loads the library rounds numbers next to zero.
FLAGS = (
    "-O3 -std=c++20 -shared -fPIC -march=native -mprefer-vector-width=512 -fno-math-errno"
    " -fno-trapping-math -fassociative-math -fno-signed-zeros -freciprocal-math"
    " -ffinite-math-only"
).split()
VOLATILE = frozenset(
    {"_name_or_path", "transformers_version", "dtype", "architectures", "_attn_implementation"}
)
"""Entries of a model's configuration that change no computation of a step in fp32."""


class CompiledStep:
    """A compiled step of one model; see `DecodeStep`.

    Args:
        folder: Holds the files that `compile_step` wrote.
        model: Gives the weights, in fp32, on the CPU.
    """

    def __init__(self, folder: Path, model: nn.Module) -> None:
        """Load the files.

        Raises:
            RuntimeError: They are not those that were compiled, or others may have written them.
        """
        _check_owner(folder)
        try:
            self.sha256 = json.loads((folder / NOTE).read_text(encoding="utf-8"))["sha256"]
            noted = {name: self.sha256[name] for name in (STEP, KERNEL)}
        except (ValueError, KeyError, TypeError):  # what a power cut leaves of it
            noted = {NOTE: None}
        for name, digest in noted.items():
            if sha256(folder / name) != digest:
                raise RuntimeError(
                    f"{folder / name} is not the file that was written there.\nHint: remove"
                    f" {folder}; the next run compiles it again."
                )
        torch.ops.load_library(str(folder / KERNEL))
        self._runner = torch._C._aoti.AOTIModelPackageLoader(
            str(folder / STEP), "model", False, 1, -1
        )
        self._names = self._runner.get_constant_fqns()
        self.model = model

    def read_weights(self) -> bool:
        """Read the model's weights where they lie now; call it before the first step of a batch.

        Returns:
            Whether they are what the program can read: whole, in fp32, contiguous, on the CPU.
        """
        tensors = dict(self.model.named_parameters(remove_duplicate=False))
        tensors.update(self.model.named_buffers(remove_duplicate=False))
        try:
            weights = {name: tensors[name.removeprefix("model.")].data for name in self._names}
        except KeyError:
            return False
        if not all(_readable(weight) for weight in weights.values()):
            return False
        self._weights = weights  # the program keeps pointers alone
        self._runner.load_constants(weights, False, True, True, False)
        return True

    def __call__(self, ids_B: Tensor, cache: KeyValueCache) -> Tensor:
        """See `DecodeStep`."""
        cache.append_column()
        filled = torch.empty(cache.filled, dtype=torch.int8)
        parts = [part for pair in cache.layers for part in pair]
        return self._runner.boxed_run([ids_B, cache.first, filled, *parts])[0]


class ExportableStep(nn.Module):
    """The step as a function of tensors alone: the cache's length is the shape of one of them."""

    def __init__(self, model: nn.Module) -> None:
        """Wrap a model whose attention function is `ATTENTION`."""
        super().__init__()
        self.model = model

    def forward(
        self, ids_B: Tensor, first_B: Tensor, filled_L: Tensor, parts: list[Tensor]
    ) -> Tensor:
        """Logits [B, V]; `parts` are keys and values of each layer in turn, changed in place."""
        columns = Columns(first_B, filled_L.shape[0], kernel=True)
        layers = list(zip(parts[::2], parts[1::2], strict=True))
        return next_logits(self.model, ids_B, columns, layers)


def identity(config: Any) -> dict[str, Any]:
    """All that a compiled step follows from: architecture, packages, processor, our sources."""
    architecture = {
        name: value
        for name, value in config.to_dict().items()
        if name not in VOLATILE and not name.endswith("token_id")
    }
    here = Path(__file__).parent
    return {
        "architecture": architecture,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "machine": platform.machine(),
        "processor": _processor_flags(),
        "sources": {name: sha256(here / name) for name in SOURCES},
    }


def cache_folder(config: Any) -> Path:
    """The folder of the compiled step of an architecture, which need not exist."""
    if chosen := os.environ.get("GEOSD_CACHE"):
        root = Path(chosen)
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "geosd"
    text = json.dumps(identity(config), sort_keys=True, default=str)
    return root / "decode" / hashlib.sha256(text.encode()).hexdigest()[:20]


def open_compiled_step(model: nn.Module) -> CompiledStep:
    """The compiled step of a model, compiled now if this machine has none yet.

    Args:
        model: A transformers model of an architecture that `takes_preallocated_cache`.

    Raises:
        RuntimeError: The machine has no compiler, compiling failed, or what was compiled before is
            damaged or may have been written by others.
    """
    if os.environ.get("GEOSD_COMPILE") == "0":
        raise RuntimeError("GEOSD_COMPILE is 0.\nHint: unset it to sample faster.")
    folder = cache_folder(model.config)
    if not (folder / NOTE).exists():
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(folder.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # programs that start together compile once
            if not (folder / NOTE).exists():
                compile_step(model.config, folder)
    return CompiledStep(folder, model)


def compile_step(config: Any, folder: Path) -> None:
    """Compile the step of an architecture in a process of its own.

    Args:
        config: A transformers configuration.
        folder: Gets the step, the attention kernel and a note of their hashes, all at once.

    Raises:
        RuntimeError: There is no compiler, or it failed.
    """
    if shutil.which(COMPILER) is None:
        raise RuntimeError(f"{COMPILER} is not installed.\nHint: install it to sample faster.")
    with tempfile.TemporaryDirectory(prefix="geosd-decode-", dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir(mode=0o700)
        config.save_pretrained(Path(scratch) / "config")
        command = [sys.executable, "-m", __name__, str(Path(scratch) / "config"), str(made)]
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(Path(scratch) / "inductor")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(
                f"compiling the decode step failed:\n{done.stderr[-2000:]}\nHint: set"
                " rollout.compile to false in params.yaml to sample without it."
            )
        note = {
            "sha256": {name: sha256(made / name) for name in (STEP, KERNEL)},
            "identity": identity(config),
        }
        write_text(made / NOTE, json.dumps(note, indent=2, default=str))
        for name in (STEP, KERNEL):
            sync(made / name)
        made.rename(folder)


def _compile_here(config_folder: Path, folder: Path) -> None:
    """Compile into a folder, with all that compiling loads."""
    from torch._inductor import aoti_compile_and_package
    from torch.export import Dim, export

    torch.set_num_threads(1)
    _build_kernel(folder / KERNEL)
    config = transformers.AutoConfig.from_pretrained(config_folder, trust_remote_code=False)
    model = transformers.AutoModelForCausalLM.from_config(
        config, dtype=torch.float32, attn_implementation=ATTENTION, trust_remote_code=False
    ).eval()
    layers, heads = config.num_hidden_layers, config.num_key_value_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    # Sizes that are no others' by chance: export would take equal ones for one dimension.
    B, C, L = 6, 40, 23
    parts = [torch.zeros(B, heads, C, width) for _ in range(2 * layers)]
    arguments = (
        torch.zeros(B, dtype=torch.long),
        torch.zeros(B, dtype=torch.long),
        torch.empty(L, dtype=torch.int8),
        parts,
    )
    rows, columns, filled = Dim("B", max=2**16), Dim("C", max=2**20), Dim("L", max=2**20)
    shapes = ({0: rows}, {0: rows}, {0: filled}, [{0: rows, 2: columns}] * len(parts))
    with torch.no_grad():
        program = export(ExportableStep(model), arguments, dynamic_shapes=shapes)
    aoti_compile_and_package(
        program,
        package_path=str(folder / STEP),
        inductor_configs={
            "aot_inductor.package_constants_in_so": False,  # weights are the caller's
            "compile_threads": 1,
            "cpp.threads": 1,
        },
    )


def _build_kernel(path: Path) -> None:
    root = Path(torch.__file__).parent
    subprocess.run(
        [
            COMPILER,
            *FLAGS,
            str(Path(__file__).with_name("decode_attention.cpp")),
            "-o",
            str(path),
            f"-I{root / 'include'}",
            f"-I{root / 'include/torch/csrc/api/include'}",
            f"-L{root / 'lib'}",
            "-ltorch_cpu",
        ],
        check=True,
    )


def _check_owner(folder: Path) -> None:
    for path in (folder, *folder.iterdir()):
        found = path.stat()
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise RuntimeError(
                f"{path} belongs to or may be written by others; it is a program and is not"
                f" loaded.\nHint: remove {folder}, or let GEOSD_CACHE name a folder of your own."
            )


def _readable(weight: Tensor) -> bool:
    whole = type(weight) is Tensor and weight.is_contiguous()
    return whole and weight.dtype == torch.float32 and weight.device.type == "cpu"


def _processor_flags() -> str:
    """What the processor can do, as far as a compiler asks; its kind where the system hides it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith(("flags", "Features")):
                return hashlib.sha256(line.encode()).hexdigest()
    return platform.processor()


if __name__ == "__main__":
    _compile_here(Path(sys.argv[1]), Path(sys.argv[2]))
