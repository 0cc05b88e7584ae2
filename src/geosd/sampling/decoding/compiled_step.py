"""The decode step of a small model, compiled once per architecture and machine (AOTInductor).

The compiled step reads the model's own weights wherever they lie, so training in place is seen. It
is fp32 or bfloat16 on a CPU; in bfloat16 it ends at the hidden states, because the output head's
product is float32 and torch.export does not know it (`geosd.models.output_head`). A compiled file
is a program: it is made on this machine, kept in a folder that its owner alone may write
(GEOSD_CACHE, or geosd in XDG_CACHE_HOME or ~/.cache), loaded only if its hash is the one that was
noted when it was made, and never part of results.
"""

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

from geosd.files import sha256, sync_file, write_text
from geosd.sampling.decoding.decode_step import ATTENTION, next_logits
from geosd.sampling.decoding.kv_cache import CacheColumns, KeyValueCache

SOURCES = ("compiled_step.py", "decode_step.py", "kv_cache.py")
STEP, NOTE = "step.pt2", "sha256"
COMPILER = "g++"
VOLATILE = frozenset(
    {"_name_or_path", "transformers_version", "dtype", "architectures", "_attn_implementation"}
)
"""Entries of a model's configuration that change no computation of a step in a given type."""


class CompiledStep:
    """A compiled step of a model that gives the weights, as `dtype`, on the CPU; `DecodeStep`."""

    def __init__(self, folder: Path, model: nn.Module, dtype: torch.dtype) -> None:
        """Load what `_compile_step` wrote.

        Raises:
            RuntimeError: It is not what was compiled, or others may have written it.
        """
        _check_owner(folder)
        self.record = {"kind": "compiled", "sha256": sha256(folder / STEP)}
        if (folder / NOTE).read_text(encoding="utf-8") != self.record["sha256"]:
            raise RuntimeError(
                f"{folder / STEP} is not the file that was written there.\nHint: remove {folder};"
                " the next run compiles it again."
            )
        self._runner = torch._C._aoti.AOTIModelPackageLoader(
            str(folder / STEP), "model", False, 1, -1
        )
        self._names = self._runner.get_constant_fqns()
        self.model, self.dtype = model, dtype

    def read_weights(self) -> bool:
        """Read the model's weights where they lie now; call it before the first step of a batch.

        Returns:
            Whether they are what the program can read: whole, contiguous, on the CPU, parameters as
            `dtype` and buffers, which hold frequencies, in fp32.
        """
        tensors = dict(self.model.named_parameters(remove_duplicate=False))
        tensors.update(self.model.named_buffers(remove_duplicate=False))
        weights = {}
        for name in self._names:
            tensor = tensors.get(name.removeprefix("model."))
            if tensor is None or not self._can_read(tensor):
                return False
            weights[name] = tensor.data
        self._weights = weights  # the program keeps pointers alone
        self._runner.load_constants(weights, False, True, True, False)
        return True

    def _can_read(self, tensor: Tensor) -> bool:
        dtype = self.dtype if isinstance(tensor, nn.Parameter) else torch.float32
        plain = type(tensor.data) is Tensor and tensor.is_contiguous()
        return plain and tensor.dtype == dtype and tensor.device.type == "cpu"

    def __call__(self, ids_B: Tensor, cache: KeyValueCache) -> Tensor:
        """See `DecodeStep`."""
        cache.append_column()
        filled = torch.empty(cache.filled, dtype=torch.int8)
        parts = [part for pair in cache.layers for part in pair]
        outcome = self._runner.boxed_run([ids_B, cache.first, filled, *parts])[0]
        return outcome if self.dtype == torch.float32 else self.model.lm_head(outcome)


class _ExportableStep(nn.Module):
    """The step as a function of tensors alone: the cache's length is the shape of one of them."""

    def __init__(self, model: nn.Module) -> None:
        """Wrap a model whose attention function is `ATTENTION`."""
        super().__init__()
        self.model = model

    def forward(
        self, ids_B: Tensor, first_B: Tensor, filled_L: Tensor, parts: list[Tensor]
    ) -> Tensor:
        """Logits [B, V], of a model whose head is the identity hidden states [B, D].

        `parts` are keys and values of each layer in turn, changed in place.
        """
        columns = CacheColumns(first_B, filled_L.shape[0])
        layers = list(zip(parts[::2], parts[1::2], strict=True))
        return next_logits(self.model, ids_B, columns, layers)


def compiled_step_folder(config: Any, dtype: torch.dtype = torch.float32) -> Path:
    """The folder of the compiled step of an architecture in a type, which need not exist.

    Its name follows from all that the step does: architecture, packages, processor, our sources.
    """
    if chosen := os.environ.get("GEOSD_CACHE"):
        root = Path(chosen)
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "geosd"
    architecture = {
        name: value
        for name, value in config.to_dict().items()
        if name not in VOLATILE and not name.endswith("token_id")
    }
    compiled_from = [
        [architecture, str(dtype)],
        [torch.__version__, transformers.__version__],
        [platform.machine(), _processor_flags()],
        [sha256(Path(__file__).with_name(name)) for name in SOURCES],
    ]
    text = json.dumps(compiled_from, sort_keys=True, default=str)
    return root / "decode" / hashlib.sha256(text.encode()).hexdigest()[:20]


def open_compiled_step(model: nn.Module) -> CompiledStep:
    """The compiled step of a model that `takes_preallocated_session`, compiled now if not there.

    Raises:
        RuntimeError: The machine has no compiler, compiling failed, or what was compiled before is
            damaged or may have been written by others.
    """
    if os.environ.get("GEOSD_COMPILE") == "0":
        raise RuntimeError("GEOSD_COMPILE is 0.\nHint: unset it to sample faster.")
    half = next(model.parameters()).dtype == torch.bfloat16
    dtype = torch.bfloat16 if half else torch.float32
    folder = compiled_step_folder(model.config, dtype)
    if not (folder / NOTE).exists():
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(folder.with_suffix(".lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # programs that start together compile once
            if not (folder / NOTE).exists():
                _compile_step(model.config, dtype, folder)
    return CompiledStep(folder, model, dtype)


def _compile_step(config: Any, dtype: torch.dtype, folder: Path) -> None:
    """Compile the step of an architecture in a type, in a process of its own.

    `folder` gets the step and its hash at once.

    Raises:
        RuntimeError: There is no compiler, or it failed.
    """
    if shutil.which(COMPILER) is None:
        raise RuntimeError(f"{COMPILER} is not installed.\nHint: install it to sample faster.")
    with tempfile.TemporaryDirectory(prefix="geosd-decode-", dir=folder.parent) as scratch:
        made = Path(scratch) / "made"
        made.mkdir(mode=0o700)
        config.save_pretrained(Path(scratch) / "config")
        words = str(Path(scratch) / "config"), str(dtype).removeprefix("torch."), str(made / STEP)
        command = [sys.executable, "-m", __name__, *words]
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(Path(scratch) / "inductor")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(
                f"compiling the decode step failed:\n{done.stderr[-2000:]}\nHint: set"
                " rollout.compile to false in params.yaml to sample without it."
            )
        write_text(made / NOTE, sha256(made / STEP))
        sync_file(made / STEP)
        made.rename(folder)


def _compile_here(config_folder: Path, dtype: torch.dtype, package: Path) -> None:
    """Compile into a file, with all that compiling loads."""
    from torch._inductor import aoti_compile_and_package
    from torch.export import Dim, export

    torch.set_num_threads(1)
    config = transformers.AutoConfig.from_pretrained(config_folder, trust_remote_code=False)
    model = transformers.AutoModelForCausalLM.from_config(
        config, dtype=dtype, attn_implementation=ATTENTION, trust_remote_code=False
    ).eval()
    if dtype != torch.float32:
        model.lm_head = nn.Identity()
    layers, heads = config.num_hidden_layers, config.num_key_value_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    # Sizes that are no others' by chance: export would take equal ones for one dimension.
    B, C, L = 6, 40, 23
    parts = [torch.zeros(B, heads, C, width, dtype=dtype) for _ in range(2 * layers)]
    arguments = (
        torch.zeros(B, dtype=torch.long),
        torch.zeros(B, dtype=torch.long),
        torch.empty(L, dtype=torch.int8),
        parts,
    )
    rows, columns, filled = Dim("B", max=2**16), Dim("C", max=2**20), Dim("L", max=2**20)
    shapes = ({0: rows}, {0: rows}, {0: filled}, [{0: rows, 2: columns}] * len(parts))
    with torch.no_grad():
        program = export(_ExportableStep(model), arguments, dynamic_shapes=shapes)
    aoti_compile_and_package(
        program,
        package_path=str(package),
        inductor_configs={
            "aot_inductor.package_constants_in_so": False,  # weights are the caller's
            "compile_threads": 1,
            "cpp.threads": 1,
        },
    )


def _check_owner(folder: Path) -> None:
    for path in (folder, *folder.iterdir()):
        found = path.stat()
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise RuntimeError(
                f"{path} belongs to or may be written by others; it is a program and is not"
                f" loaded.\nHint: remove {folder}, or let GEOSD_CACHE name a folder of your own."
            )


def _processor_flags() -> str:
    """Instructions of the processor, for a compiler; its kind where the system hides them."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith(("flags", "Features")):
                return hashlib.sha256(line.encode()).hexdigest()
    return platform.processor()


if __name__ == "__main__":
    _compile_here(Path(sys.argv[1]), getattr(torch, sys.argv[2]), Path(sys.argv[3]))
