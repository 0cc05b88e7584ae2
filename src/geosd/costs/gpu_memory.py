"""What a GPU holds, part by part, of a model whose training state GPUs share out.

N = parameters, L = blocks, d = hidden width, V = vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from geosd.costs.update_cost import SNAPSHOT_BYTES, STATE_BYTES, dimensions, memory
from geosd.costs.workload import Assumptions, GpuRequest, TrainingWorkload
from geosd.models.published_architectures import Architecture
from geosd.optim.kfac_memory import factor_bytes

BF16, FP32 = 2, 4


class MemoryPart(NamedTuple):
    """One part of what a GPU holds, its bytes there, and their formula in words."""

    name: str
    bytes: float
    formula: str


def kv_bytes(model: Architecture) -> int:
    """Bytes that a token leaves in the cache, bf16: 2 L d_kv 2; sliding windows save nothing."""
    return 2 * model.layers * model.keys * BF16


def training_gpu(
    model: Architecture, training: TrainingWorkload, request: GpuRequest, assumed: Assumptions
) -> list[MemoryPart]:
    """What each training GPU holds at the fullest moment of a step, for the longest responses.

    K-FAC's averages and inverses are shared out; its sums are over the GPU's own tokens, of all
    blocks. A pass multiplies with all bf16 weights, or with those gathered at a time. The heads of
    anchor and pi_0 read hidden states of a worker. Logits are bf16 of every model, the student's
    fp32 too, and their gradient fp32.
    """
    n, models = request.trainers, 1 + len(training.needs)
    parts = [
        MemoryPart(name, each * model.parameters / n, f"{each} N / {n}")
        for name, each in STATE_BYTES.items()
    ]
    if training.kfac is not None:
        g, _, storage = training.kfac
        kept = memory(model, g, storage, share_inputs=True).kfac
        sums = factor_bytes(dimensions(model), g, "float32", share_inputs=True) / 2
        parts += [
            MemoryPart("K-FAC factors", kept / n, f"g = {g}, {storage} / {n}"),
            MemoryPart("K-FAC sums of a step", sums, f"g = {g}, fp32, whole"),
        ]
    tables = model.parameters - model.projections - model.norms
    gathered = tables + 2 * model.projections / model.layers
    weights, formula = (
        (model.parameters, "2 N") if n == 1 else (gathered, "embedding, head, two blocks")
    )
    logits = training.chunk * model.vocabulary * (BF16 * models + 2 * FP32)
    tokens = training.microbatch * (assumed.prompt + training.cap)
    parts += [
        MemoryPart("bf16 weights of a pass", BF16 * weights, formula),
        MemoryPart("heads of anchor and pi_0", 2 * BF16 * model.vocabulary * model.hidden, "4 V d"),
        *_activations(model, training.recompute, tokens),
        MemoryPart("logits", logits, f"chunk of {training.chunk}, {models} models"),
    ]
    return parts if request.inference else parts + inference_gpu(model, training, request, assumed)


def _activations(model: Architecture, recompute: bool, tokens: int) -> list[MemoryPart]:
    """What a forward pass of so many tokens leaves for the backward pass, bf16.

    A block keeps, a token, two norms' outputs and the residual between (3 d); q, k, v and q, k
    rotated (2 d_q + 3 d_kv); the heads' outputs (d_q) and the block's (d); gate, up, gate's
    activation, their product and the gradient of one of them (5 d_ff). Attention keeps no T x T.
    """
    numbers = 4 * model.hidden + 3 * model.queries + 3 * model.keys + 5 * model.ffn
    block = tokens * numbers * BF16
    if not recompute:
        return [MemoryPart("activations", model.layers * block, f"{tokens} tokens, all blocks")]
    inputs = model.layers * tokens * model.hidden * BF16
    return [
        MemoryPart("inputs of the blocks", inputs, f"2 L d, {tokens} tokens"),
        MemoryPart("activations of one block", block, f"{tokens} tokens, made again"),
    ]


def inference_gpu(
    model: Architecture, training: TrainingWorkload, request: GpuRequest, assumed: Assumptions
) -> list[MemoryPart]:
    """What each inference GPU of a training holds, its models shared out, for longest responses."""
    m, sequences = request.inference or request.trainers, training.update.sequences
    sizes = {
        "weights that sample": BF16,
        "the student's, as they come": BF16,
        "pi_0, for the drift": BF16,
        **({"anchor": SNAPSHOT_BYTES} if "anchor" in training.needs else {}),
    }
    cache = sequences * (assumed.prompt + training.cap) * kv_bytes(model) / m
    return [
        *(
            MemoryPart(k, each * model.parameters / m, f"{each} N / {m}")
            for k, each in sizes.items()
        ),
        MemoryPart("KV cache", cache, f"{sequences} sequences at the cap / {m}"),
    ]


def total_bytes(parts: Iterable[MemoryPart]) -> float:
    """Bytes of all parts."""
    return sum(part.bytes for part in parts)


def gpus_needed(
    model: Architecture,
    training: TrainingWorkload,
    inference: int,
    assumed: Assumptions,
    most: int = 8,
) -> int:
    """The fewest training GPUs, up to the `most` of a node, whose memory holds their share.

    Raises:
        ValueError: Not even `most` suffice.
    """
    for n in range(1, most + 1):
        parts = training_gpu(model, training, GpuRequest(n + inference, inference), assumed)
        if total_bytes(parts) <= assumed.usable_bytes:
            return n
    raise ValueError(
        f"{model.label} does not fit on {most} training GPUs of {assumed.device.label}.\n"
        "Hint: a smaller chunk or microbatch, or GPUs with more memory."
    )
