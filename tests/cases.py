"""What tests of several rooms try things on: tiny models, processes, capsules from elsewhere.

A program that `launch` starts imports this file too, so a function imports what takes long.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
import re
import runpy
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from torch import nn

QUICK_ROLLOUT = "    rollout: {engine: transformers, compile: true, precision: float32}\n"
"""A line of study quick in params.yaml, before which a test puts keys of its own."""


def with_studies(text: str, studies: Sequence[str]) -> str:
    """The text of params.yaml with some of its studies, and what these extend, alone.

    Quick, which the file names as its study, stays. A test of one study need not have all of them
    checked. Anchors in studies that are left out are gone.
    """
    head, studies_line, entries = text.partition("\nstudies:\n")
    parts = re.split(r"^(?=  \w+:)", entries, flags=re.MULTILINE)
    by_name = {part.partition(":")[0].strip(): part for part in parts if part}
    kept = {"quick"}
    for name in studies:
        while name not in kept:
            kept.add(name)
            parent = re.search(r"^    extends: (\w+)", by_name[name], re.MULTILINE)
            name = parent[1] if parent else name
    return head + studies_line + "".join(by_name[name] for name in by_name if name in kept)


SIZES = {
    "vocab_size": 31,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8}


def decoder(family: str = "Qwen3", seed: int = 0, **changes: Any) -> nn.Module:
    """A random decoder of a few thousand parameters; `changes` are of its `SIZES`, or beside them.

    A head has four entries, unless `changes` says otherwise.
    """
    import torch
    import transformers

    torch.manual_seed(seed)
    sizes = {**SIZES, **changes}
    if family not in ("Phi3", "GPTNeoX", "Starcoder2"):  # which divide the hidden size
        sizes.setdefault("head_dim", 4)
    config = getattr(transformers, f"{family}Config")(**sizes)
    return transformers.AutoModelForCausalLM.from_config(config)


IMPORTED = (
    "geosd.training.fsdp",
    "geosd.training.loop",
    "geosd.training.rollout_workers",
    "geosd.training.run",
    "transformers.models.qwen3.modeling_qwen3",
)
"""What programs of several processes import, with all that these import; three seconds each."""


def places(processes: int) -> list[dict[str, str]]:
    """What torchrun tells each of some processes of one run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    everyone = {
        "WORLD_SIZE": str(processes),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "test",
        "OMP_NUM_THREADS": "1",
    }
    return [{**everyone, "RANK": str(i), "LOCAL_RANK": str(i)} for i in range(processes)]


def launch(
    program: str,
    *arguments: object,
    processes: int = 2,
    timeout: float = 600,
    imported: Sequence[str] = IMPORTED,
) -> None:
    """Run a program in several processes, as torchrun does, none of which may fail.

    Each is a fork of a process that has imported its packages and done nothing: a fork of the
    process of the tests would find what is left of other tests' process groups and threads.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*imported])
    words = [program, *map(str, arguments)]
    started = [context.Process(target=_run, args=(words, each)) for each in places(processes)]
    for process in started:
        process.start()
    try:
        for process in started:
            process.join(timeout)
            assert process.exitcode == 0
    finally:
        for process in started:
            process.kill()


def _run(words: list[str], place: dict[str, str]) -> None:
    """Be a program in its place."""
    os.environ.update(place)
    sys.argv = words
    sys.path[0] = str(Path(words[0]).parent)
    runpy.run_path(words[0], run_name="__main__")


def schema_errors(schema: str, *files: Path) -> str:
    """What check-jsonschema says of files by a schema that it brings; empty where all are right."""
    done = python("-m", "check_jsonschema", "--builtin-schema", schema, *files)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def python(
    *words: object, environment: Mapping[str, str] | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run Python with some words behind it in a process of its own; what it printed is text.

    `environment` is set beside that of the tests; `options` are those of `subprocess.run`.
    """
    variables = {**os.environ, **(environment or {})}
    command = [sys.executable, *map(str, words)]
    options = {"capture_output": True, "text": True, **options}
    return subprocess.run(command, env=variables, **options)


def until(
    holds: Callable[[], Any], process: subprocess.Popen[Any] | None = None, seconds: float = 300
) -> Any:
    """Wait until something holds, and return it; `process`, if given, may not end before."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        assert process is None or process.poll() is None, "it ended first"
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.01)
    return found


@contextlib.contextmanager
def limited_process(module: ModuleType, seconds: float) -> Iterator[Any]:
    """The process of a module, with another limit; what ends it is followed by the next one."""
    from geosd.problems.limited_process import LimitedProcess

    quick = LimitedProcess(module.__name__, seconds=seconds, patience=120)
    with patch.object(module, "_PROCESS", quick):
        yield quick
    quick.stop()


def crate_entities(files: Mapping[str, bytes]) -> list[dict[str, str]]:
    """What the metadata of a capsule say of its files."""
    return [
        {
            "@id": name,
            "@type": "File",
            "contentSize": str(len(data)),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        for name, data in files.items()
    ]


def zip_crate(
    path: Path,
    files: Mapping[str, bytes],
    metadata: Any,
    packed_as: Mapping[str, zipfile.ZipInfo] | None = None,
) -> Path:
    """Pack files behind their metadata; `packed_as` is the ZipInfo of a file by its name."""
    from geosd.provenance.crate import METADATA

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(METADATA, json.dumps(metadata))
        for name, data in files.items():
            packed.writestr((packed_as or {}).get(name, name), data)
    return path
