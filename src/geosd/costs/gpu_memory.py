"""What one GPU holds, part by part, where a model's training state is shared out among GPUs.

N = parameters, T = tokens of a sequence, L = blocks, d = hidden width, V = vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from geosd.costs.assumptions import Assumptions
from geosd.costs.update_cost import SNAPSHOT_BYTES, STATE_BYTES, dimensions, memory
from geosd.models.published_architectures import Architecture
from geosd.optim.kfac_memory import factor_bytes

BF16, FP32 = 2, 4


@dataclass(frozen=True)
class MemoryPart:
    """One part of what a GPU holds.

    Attributes:
        name: What it is.
        bytes: On one GPU.
        how: How it was reckoned.
    """

    name: str
    bytes: float
    how: str


@dataclass(frozen=True)
class TrainingLayout:
    """How a training is laid out.

    Attributes:
        training: GPUs among which the optimiser's state is shared out.
        inference: Further GPUs, which generate rollouts and score the anchor; with 0 the training
            GPUs do both.
        blocks: K-FAC's g; None without K-FAC.
        storage: Type of K-FAC's factors.
        anchor: Whether the method has an anchor.
        sequences: Rollouts of a step.
        response: Longest response, in tokens.
        chunk: Positions whose logits are held at once.
        models: Models whose logits a chunk holds: student, teacher, anchor, pi_0.
        microbatch: Sequences that a GPU runs forward and backward at once.
        recompute: Whether the backward pass makes the blocks' activations again.
    """

    training: int
    inference: int
    blocks: int | None
    storage: str
    anchor: bool
    sequences: int
    response: int
    chunk: int
    models: int
    microbatch: int
    recompute: bool


def kv_bytes(model: Architecture) -> int:
    """Bytes of keys and values that a token leaves in the cache, bf16: 2 L d_kv 2.

    Sliding windows, which forget, are not counted.
    """
    return 2 * model.layers * model.keys * BF16


def training_gpu(
    model: Architecture, layout: TrainingLayout, assumed: Assumptions
) -> list[MemoryPart]:
    """What each training GPU holds at the fullest moment of a step, for the longest responses."""
    n = layout.training
    parts = [
        MemoryPart(name, each * model.parameters / n, f"{each} N / {n}")
        for name, each in STATE_BYTES.items()
    ]
    if layout.blocks is not None:
        parts += _kfac(model, layout)
    tokens = layout.microbatch * (assumed.prompt + layout.response)
    seen = f"chunk of {layout.chunk}, {layout.models} models"
    parts += [
        _compute_weights(model, n),
        _heads(model),
        *_activations(model, layout, tokens),
        MemoryPart("logits", _logits(model, layout), seen),
    ]
    if not layout.inference:
        parts += inference_gpu(model, layout, assumed)
    return parts


def inference_gpu(
    model: Architecture, layout: TrainingLayout, assumed: Assumptions
) -> list[MemoryPart]:
    """What each inference GPU of a training holds, for the longest responses.

    The worker's models are counted as shared out among its GPUs.
    """
    m = layout.inference or layout.training
    tokens = layout.sequences * (assumed.prompt + layout.response)
    names = ["weights that sample", "the student's, as they come", "pi_0, for the drift"]
    held = [MemoryPart(name, BF16 * model.parameters / m, f"2 N / {m}") for name in names]
    if layout.anchor:
        anchor = SNAPSHOT_BYTES * model.parameters / m
        held.append(MemoryPart("anchor", anchor, f"{SNAPSHOT_BYTES} N / {m}"))
    cache = tokens * kv_bytes(model) / m
    return [*held, MemoryPart("KV cache", cache, f"{layout.sequences} sequences at the cap / {m}")]


def total_bytes(parts: list[MemoryPart]) -> float:
    """Bytes of all parts."""
    return sum(part.bytes for part in parts)


def gpus_needed(
    model: Architecture, layout: TrainingLayout, assumed: Assumptions, most: int = 8
) -> int:
    """The fewest training GPUs whose memory holds their share.

    Args:
        model: The architecture.
        layout: Its number of training GPUs is not read.
        assumed: How much memory is planned with.
        most: GPUs of a node.

    Raises:
        ValueError: Not even `most` suffice.
    """
    for n in range(1, most + 1):
        tried = replace(layout, training=n)
        if total_bytes(training_gpu(model, tried, assumed)) <= assumed.usable_bytes:
            return n
    raise ValueError(
        f"{model.label} does not fit on {most} training GPUs of {assumed.device.label}.\n"
        "Hint: a smaller chunk or microbatch, or GPUs with more memory."
    )


def _kfac(model: Architecture, layout: TrainingLayout) -> list[MemoryPart]:
    """Averages and inverses are shared out; every rank sums over its own tokens for all blocks."""
    kept = memory(model, layout.blocks, layout.storage, share_inputs=True).kfac
    sums = factor_bytes(dimensions(model), layout.blocks, "float32", share_inputs=True) / 2
    how = f"g = {layout.blocks}, {layout.storage} / {layout.training}"
    return [
        MemoryPart("K-FAC factors", kept / layout.training, how),
        MemoryPart("K-FAC sums of a step", sums, f"g = {layout.blocks}, fp32, whole"),
    ]


def _compute_weights(model: Architecture, n: int) -> MemoryPart:
    """The bf16 weights that a pass multiplies with: all of them, or those gathered at a time."""
    if n == 1:
        return MemoryPart("bf16 weights of a pass", BF16 * model.parameters, "2 N")
    tables = model.parameters - model.projections - model.norms
    gathered = tables + 2 * model.projections / model.layers
    return MemoryPart("bf16 weights of a pass", BF16 * gathered, "embedding, head, two blocks")


def _heads(model: Architecture) -> MemoryPart:
    """The output heads of anchor and pi_0, bf16: they read the hidden states of a worker."""
    each = BF16 * model.vocabulary * model.hidden
    return MemoryPart("heads of anchor and pi_0", 2 * each, "4 V d")


def _activations(model: Architecture, layout: TrainingLayout, tokens: int) -> list[MemoryPart]:
    """What a forward pass of so many tokens leaves for the backward pass, bf16."""
    inside = tokens * _inside_a_block(model) * BF16
    if not layout.recompute:
        return [MemoryPart("activations", model.layers * inside, f"{tokens} tokens, all blocks")]
    inputs = model.layers * tokens * model.hidden * BF16
    return [
        MemoryPart("inputs of the blocks", inputs, f"2 L d, {tokens} tokens"),
        MemoryPart("activations of one block", inside, f"{tokens} tokens, made again"),
    ]


def _inside_a_block(model: Architecture) -> int:
    """Numbers a token that a block keeps for its backward pass, beside its input.

    Two norms' outputs and the residual between (3 d); q, k, v and q, k rotated (2 d_q + 3 d_kv);
    the heads' outputs (d_q) and the block's (d); gate, up, gate's activation, their product and the
    gradient of one of them (5 d_ff). Attention keeps no matrix of T x T.
    """
    return 4 * model.hidden + 3 * model.queries + 3 * model.keys + 5 * model.ffn


def _logits(model: Architecture, layout: TrainingLayout) -> int:
    """bf16 logits of every model, the student's in fp32, and their gradient in fp32."""
    return layout.chunk * model.vocabulary * (BF16 * layout.models + 2 * FP32)
