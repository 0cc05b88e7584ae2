"""From plain values to a sampler: the one place that chooses between engines."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from geosd.models.devices import job_device
from geosd.models.load_and_save import load_model, weights_as_saved
from geosd.models.precision import resolve_precision
from geosd.problems.encoding import Encoding
from geosd.sampling.sampler import Sampler
from geosd.sampling.transformers_sampler import TransformersSampler
from geosd.sampling.vllm_sampler import VllmSampler, require_vllm, start_vllm
from geosd.sampling.weight_delivery import WeightDelivery


def resolve_engine(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of an engine, with the precision that they stand for on this machine.

    It is float32 where it is left out.
    """
    precision = resolve_precision(settings.get("precision", "float32"), job_device())
    return {**settings, "precision": precision}


def build_sampler(
    settings: Mapping[str, Any],
    checkpoint: Path | str,
    encoding: Encoding,
    model: nn.Module | None = None,
    live: bool = False,
    progress: str | None = None,
    group: dist.ProcessGroup | None = None,
    beside_trainer: bool = False,
) -> Sampler:
    """A sampler of a checkpoint, or of a model in training.

    Args:
        settings: `engine`, `sequences` and `precision`, as `resolve_engine` gives them, and vLLM's
            own where it is the engine; see `geosd.sampling.vllm_sampler.start_vllm`.
        checkpoint: Folder of the weights; of a live model, those that it began with.
        encoding: Says which tokens end a response.
        model: The same weights, loaded, where the caller has them anyway. A model that is not live
            is sampled only where it has the precision.
        live: Whether the model is being trained: every call then samples it as it is.
        progress: What the progress bar says; None shows none.
        group: The processes that hold a live model in shards, of which the first one samples; None
            is this one alone.
        beside_trainer: Whether a live model is trained by the same processes. On a GPU vLLM then
            sleeps while they do not sample.

    Raises:
        ModuleNotFoundError: The engine is vllm, and it is not installed.
    """
    engine, options = settings["engine"], {k: v for k, v in settings.items() if k != "engine"}
    if engine == "transformers":
        dtype = getattr(torch, options["precision"])
        usable = model is not None and (live or next(model.parameters()).dtype == dtype)
        sampled = model if usable else load_model(checkpoint, dtype)[0].to(job_device())
        return TransformersSampler(
            sampled,
            encoding.end_ids,
            encoding.pad_id,
            rows=options["sequences"],
            compiled=options.get("compile", False),
            packed=options.get("packed", False),
            progress=progress,
        )
    require_vllm()
    if model is None and torch.cuda.is_available():  # no other model: vLLM's own share, 0.9
        options.pop("memory", None)
    sleeps = beside_trainer and torch.cuda.is_available()
    return VllmSampler(
        partial(start_vllm, checkpoint, live=live, sleeps=sleeps, **options),
        encoding.end_ids,
        weights=partial(weights_as_saved, model, getattr(torch, options["precision"]))
        if live
        else None,
        progress=progress,
        delivery=engine_weight_delivery(options, group),
        sleeps=sleeps,
    )


def engine_weight_delivery(
    options: Mapping[str, Any], group: dist.ProcessGroup | None
) -> WeightDelivery:
    """The way of a live model's weights to vLLM: on the card where there is one, else in files.

    A process cannot open a buffer that is its own, as an engine in the trainer's process would.
    """
    apart = options.get("process", "own") == "own"
    return WeightDelivery(
        by_memory=torch.cuda.is_available() and apart,
        devices=options.get("tensor_parallel", 1),
        group=group,
    )
