"""Memory of a training's GPUs at their fullest, part by part, for the plan.

Trainers and inference GPUs hold different parts; a GPU that does all of a training holds the one
while it trains, and the other while it samples.

N = parameters, L = blocks, d = hidden width, V = vocabulary.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from geosd.costs.assumptions import Assumptions
from geosd.costs.memory_and_disk import (
    BF16,
    FP32,
    GB,
    STATE_BYTES,
    MemoryAndDiskPart,
    memory_of_kv_token,
    total_training_memory,
)
from geosd.costs.update_operations import update_projection_sizes
from geosd.costs.workload import TrainingWorkload, WorkloadGpus
from geosd.models.architectures import Architecture
from geosd.optim.factor_sizes import adapter_factor_bytes, adapter_factor_parameters, factor_bytes

ENGINE_ASLEEP = 2e9
"""Bytes of a GPU that an engine in its sleep keeps: context, graphs, workspace. Not measured."""


def training_gpu_memory(
    model: Architecture, training: TrainingWorkload, request: WorkloadGpus, assumed: Assumptions
) -> list[MemoryAndDiskPart]:
    """Memory of each training GPU at the fullest moment of a step, for the longest responses.

    K-FAC's averages and inverses are shared out; its sums are over the GPU's own tokens, of all
    blocks. A pass multiplies with all bf16 weights, or with those gathered at a time. The heads of
    anchor and pi_0 read hidden states of a worker. Logits are fp32 of every model, and so is their
    gradient, which meets the head in bf16; on the whole vocabulary so are their log-probabilities.
    A GPU that does all alone is fullest either while it trains or while it samples
    (`one_card_memory`).
    """
    if request.gpus == 1:
        return max(one_card_memory(model, training, assumed), key=total_gpu_memory)
    n = request.trainers
    parts = [
        MemoryAndDiskPart(name, each * model.parameters / n, f"{each} N / {n}")
        for name, each in STATE_BYTES.items()
    ]
    if training.muon:
        parts[-1] = _second_moments_without_projections(model, n)
        parts.append(_muon_step(model))
    if training.kfac is not None:
        g, _, storage = training.kfac
        kept = total_training_memory(model, g, storage, share_inputs=True).kfac
        sums = factor_bytes(update_projection_sizes(model), g, "float32", share_inputs=True) / 2
        parts += [
            MemoryAndDiskPart("K-FAC factors", kept / n, f"g = {g}, {storage} / {n}"),
            MemoryAndDiskPart("K-FAC sums of a step", sums, f"g = {g}, fp32, whole"),
        ]
    tables = model.parameters - model.projections - model.norms
    gathered = tables + 2 * model.projections / model.layers
    weights, formula = gathered, "embedding, head, two blocks"
    if n == 1:
        weights, formula = model.parameters, "2 N"
    tokens = training.microbatch * (assumed.prompt + training.cap)
    parts += [
        MemoryAndDiskPart("bf16 weights of a pass", BF16 * weights, formula),
        MemoryAndDiskPart(
            "heads of anchor and pi_0", 2 * BF16 * model.vocabulary * model.hidden, "4 V d"
        ),
        *_activations(model, training.recompute, tokens),
        _logits(model, training),
    ]
    if not request.inference:
        parts += inference_gpu_memory(model, training, request, assumed)
    return parts


def _second_moments_without_projections(model: Architecture, gpus: int) -> MemoryAndDiskPart:
    """AdamW's second moments under Muon, which trains the projections and keeps none of them."""
    name = "second moments"
    each, rest = STATE_BYTES[name], model.parameters - model.projections
    return MemoryAndDiskPart(name, each * rest / gpus, f"{each} (N - projections) / {gpus}")


def _muon_step(model: Architecture) -> MemoryAndDiskPart:
    """Memory of Muon's step of the largest matrix [m, n], m <= n, whole on every GPU.

    The matrix before the step and its averaged gradient are fp32, the iterates before and after are
    bf16, and so are two products [m, m].
    """
    sides = [sorted(each[1:]) for each in update_projection_sizes(model).projections()]
    m, n = max(sides, key=lambda side: side[0] * side[1])
    held = (2 * FP32 + 2 * BF16) * m * n + 2 * BF16 * m**2
    return MemoryAndDiskPart("Muon's step of one matrix", held, f"{m} x {n}, whole")


def _logits(model: Architecture, training: TrainingWorkload) -> MemoryAndDiskPart:
    models = 1 + len(training.needs) + 2 * training.purified
    nbytes = training.chunk * model.vocabulary * (FP32 * (models + 1) + BF16)
    if training.whole_vocabulary:
        nbytes += training.chunk * model.vocabulary * FP32 * (models + 1)
    return MemoryAndDiskPart("logits", nbytes, f"chunk of {training.chunk}, {models} models")


class _OneCardMemory(NamedTuple):
    """Memory of a GPU that trains, samples and scores, while it does the one and the other."""

    sampling: list[MemoryAndDiskPart]
    training: list[MemoryAndDiskPart]


def one_card_memory(
    model: Architecture, training: TrainingWorkload, assumed: Assumptions
) -> _OneCardMemory:
    """Memory of a GPU that does all of a training, for the longest responses.

    The engine sleeps while the trainer works, and then keeps no weights and no cache. While it
    samples there are no gradients. LoRA's frozen weights are one copy for the student, anchor and
    pi_0, in fp32, and one more in bf16 during the passes.
    """
    kept = [*_kept_on_one_card(model, training), *_factors_on_one_card(model, training)]
    trained = _trained_parameters(model, training)
    tokens = training.microbatch * (assumed.prompt + training.cap)
    training_parts = [
        *kept,
        MemoryAndDiskPart("gradients", FP32 * trained, "4 a trained parameter"),
        *_factor_sums(model, training),
        MemoryAndDiskPart("bf16 weights of a pass", BF16 * model.parameters, "2 N"),
        *_activations(model, training.recompute, tokens),
        _logits(model, training),
        MemoryAndDiskPart("engine asleep", ENGINE_ASLEEP, "its context and graphs; not measured"),
    ]
    return _OneCardMemory([*kept, *_engine_on_one_card(model, training, assumed)], training_parts)


def engine_share(
    model: Architecture, training: TrainingWorkload, assumed: Assumptions, card: float
) -> float:
    """Share of a GPU of `card` bytes that is left for the engine, where one GPU does all.

    Raises:
        ValueError: The trainer does not fit, or leaves no room for the engine's weights and one
            response.
    """
    sampling, trains = one_card_memory(model, training, assumed)
    usable = assumed.usable * card
    needed = total_gpu_memory(trains)
    if needed <= usable:
        engine = _engine_on_one_card(model, training, assumed)
        state = total_gpu_memory(sampling) - total_gpu_memory(engine)
        sequences = training.update.sequences
        weights, cache = (part.bytes for part in engine)
        needed = state + weights + cache / sequences
        if needed <= usable:
            return (usable - state) / card
    hint = "Hint: a GPU with more memory, resources of more GPUs, or shorter response_tokens"
    if training.lora is None:
        hint += "; or training.lora, with which adapters alone train"
    raise ValueError(
        f"{model.label} does not fit one GPU of {card / GB:.0f} GB: training needs"
        f" {total_gpu_memory(trains) / GB:.1f} GB of the {usable / GB:.1f} that are planned with,"
        f" and sampling one response {_least_to_sample(sampling, training) / GB:.1f}.\n{hint}."
    )


def _least_to_sample(sampling: Sequence[MemoryAndDiskPart], training: TrainingWorkload) -> float:
    """Bytes of a GPU that does all while it samples one response."""
    *others, cache = sampling
    return total_gpu_memory(others) + cache.bytes / training.update.sequences


def _trained_parameters(model: Architecture, training: TrainingWorkload) -> int:
    if training.lora is None:
        return model.parameters
    return adapter_factor_parameters(update_projection_sizes(model), *training.lora)


def _kept_on_one_card(model: Architecture, training: TrainingWorkload) -> list[MemoryAndDiskPart]:
    """Weights and moments of a training on one GPU, which it keeps from step to step."""
    trained = _trained_parameters(model, training)
    if training.lora is None:
        weights = [
            MemoryAndDiskPart("master weights", FP32 * trained, "4 N"),
            MemoryAndDiskPart("anchor", BF16 * trained, "2 N"),
            MemoryAndDiskPart("pi_0", BF16 * trained, "2 N"),
        ]
    else:
        rank = f"rank {training.lora.rank}"
        weights = [
            MemoryAndDiskPart(
                "frozen weights", FP32 * model.parameters, "4 N, of all three models"
            ),
            MemoryAndDiskPart("adapters", FP32 * trained, f"4 a parameter, {rank}"),
            MemoryAndDiskPart(
                "adapters of anchor and pi_0", 2 * BF16 * trained, f"4 a parameter, {rank}"
            ),
        ]
    if training.muon and training.lora is None:
        first = MemoryAndDiskPart("first moments", FP32 * trained, "4 N")
        moments = [first, _second_moments_without_projections(model, 1), _muon_step(model)]
    else:
        moments = [MemoryAndDiskPart("moments", 2 * FP32 * trained, "8 a trained parameter")]
    return [*weights, *moments]


def _factors_on_one_card(
    model: Architecture, training: TrainingWorkload
) -> list[MemoryAndDiskPart]:
    if training.kfac is None:
        return []
    g, _, storage = training.kfac
    nbytes = _bytes_of_factors(model, training, storage)
    return [MemoryAndDiskPart("K-FAC factors", nbytes, f"g = {g}, {storage}")]


def _factor_sums(model: Architecture, training: TrainingWorkload) -> list[MemoryAndDiskPart]:
    if training.kfac is None:
        return []
    nbytes = _bytes_of_factors(model, training, "float32") / 2
    return [MemoryAndDiskPart("K-FAC sums of a step", nbytes, f"g = {training.kfac.blocks}, fp32")]


def _bytes_of_factors(model: Architecture, training: TrainingWorkload, storage: str) -> int:
    sizes, g = update_projection_sizes(model), training.kfac.blocks
    if training.lora is None:
        return factor_bytes(sizes, g, storage)
    return adapter_factor_bytes(sizes, *training.lora, g, storage)


def _engine_on_one_card(
    model: Architecture, training: TrainingWorkload, assumed: Assumptions
) -> list[MemoryAndDiskPart]:
    """An engine's weights, and its cache for the responses of a step at the cap."""
    sequences = training.update.sequences
    cache = sequences * (assumed.prompt + training.cap) * memory_of_kv_token(model)
    return [
        MemoryAndDiskPart("weights that sample", BF16 * model.parameters, "2 N"),
        MemoryAndDiskPart("KV cache", cache, f"{sequences} sequences at the cap"),
    ]


def _activations(model: Architecture, recompute: bool, tokens: int) -> list[MemoryAndDiskPart]:
    """Bytes that a forward pass of so many tokens keeps for the backward pass, bf16.

    A block keeps, a token, two norms' outputs and the residual between (3 d); q, k, v and q, k
    rotated (2 d_q + 3 d_kv); the heads' outputs (d_q) and the block's (d); gate, up, gate's
    activation, their product and the gradient of one of them (5 d_ff). Attention keeps no T x T.
    """
    numbers = 4 * model.hidden + 3 * model.queries + 3 * model.keys + 5 * model.ffn
    block = tokens * numbers * BF16
    if not recompute:
        return [
            MemoryAndDiskPart("activations", model.layers * block, f"{tokens} tokens, all blocks")
        ]
    inputs = model.layers * tokens * model.hidden * BF16
    return [
        MemoryAndDiskPart("inputs of the blocks", inputs, f"2 L d, {tokens} tokens"),
        MemoryAndDiskPart("activations of one block", block, f"{tokens} tokens, made again"),
    ]


def inference_gpu_memory(
    model: Architecture, training: TrainingWorkload, request: WorkloadGpus, assumed: Assumptions
) -> list[MemoryAndDiskPart]:
    """Memory of each inference GPU of a training, its models shared out, for longest responses.

    Several GPUs gather each model that scores: embedding and head stay until all responses are
    scored. The weights that sample and the cache are the sampler's least: vLLM takes the share of
    the GPU that `rollout.memory` names.
    """
    m, sequences = request.inference or request.trainers, training.update.sequences
    scoring = 1 + ("anchor" in training.needs)
    tables = model.parameters - model.projections - model.norms
    gathered = BF16 * (scoring * tables + 2 * model.projections / model.layers)
    held = ["weights that sample", "the student's, as they come", "pi_0, for the drift"]
    held += ["anchor"] if "anchor" in training.needs else []
    parts = [
        MemoryAndDiskPart(name, BF16 * model.parameters / m, f"{BF16} N / {m}") for name in held
    ]
    if request.inference > 1:
        parts.append(
            MemoryAndDiskPart("gathered to score", gathered, "embeddings, heads, two blocks")
        )
    cache = sequences * (assumed.prompt + training.cap) * memory_of_kv_token(model) / m
    return [*parts, MemoryAndDiskPart("KV cache", cache, f"{sequences} sequences at the cap / {m}")]


def total_gpu_memory(parts: Iterable[MemoryAndDiskPart]) -> float:
    """Bytes of all parts of a GPU's memory."""
    return sum(part.bytes for part in parts)
