"""The time that jobs take on given GPUs, reckoned by operations and by bytes moved (a roofline).

Decoding reads all weights and the caches of all sequences once a token, so it is bound by the
memory's bandwidth unless very many sequences are decoded side by side. Passes over whole sequences
are bound by operations. Both get a share of what the data sheet promises. Left out are the start
of an engine, moving weights to it, prefill, grading, and the passes of `training.diagnose_every`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from geosd.costs.assumptions import Assumptions
from geosd.costs.gpu_memory import BF16, kv_bytes
from geosd.costs.update_cost import (
    BACKWARD,
    FORWARD,
    UpdateSize,
    UpdateUnits,
    forward_units,
    kfac_units,
)
from geosd.models.published_architectures import Architecture

HOUR = 3600.0
RECOMPUTE = FORWARD
"""Units of the forward pass that checkpointed blocks make again in the backward pass."""


@dataclass(frozen=True)
class DecodingTime:
    """How long it takes to generate responses.

    Attributes:
        seconds: In all.
        concurrent: Sequences decoded at once.
        bound: What it waits for.
    """

    seconds: float
    concurrent: int
    bound: str


def decoding(
    model: Architecture,
    sequences: int,
    cap: int,
    gpus: int,
    assumed: Assumptions,
    other_bytes: float = 0.0,
) -> DecodingTime:
    """Generate `sequences` responses, a new one starting when one ends.

    Args:
        model: The architecture.
        sequences: Responses.
        cap: Longest response, in tokens; the mean is `assumed.length` of it.
        gpus: GPUs over which the model is shared out, at no cost.
        assumed: The GPU and what is taken for granted.
        other_bytes: Bytes of those GPUs, all together, that something else holds.

    Raises:
        ValueError: The weights leave no room for one sequence.
    """
    tokens = assumed.length * cap
    context = assumed.prompt + tokens / 2  # in the mean, over the steps of a response
    weights = BF16 * model.parameters
    cache = kv_bytes(model) * context
    held = int((gpus * assumed.usable_bytes - weights - other_bytes) // cache)
    at_once = min(sequences, assumed.concurrent, held)
    if at_once < 1:
        raise ValueError(
            f"{model.label} leaves no room for a response on {gpus} {assumed.device.label}.\n"
            "Hint: ask for more GPUs in params.yaml, section resources."
        )
    moved = (weights + at_once * cache) / (assumed.bandwidth_share * assumed.device.bandwidth)
    # forward_units takes a sequence's length, whose tokens meet half of it in the mean.
    units = at_once * model.parameters * forward_units(model, 2 * context)
    counted = units / (assumed.mfu * assumed.device.flops)
    steps = sequences * tokens / at_once
    bound = "bandwidth" if moved >= counted else "operations"
    return DecodingTime(steps * max(moved, counted) / gpus, at_once, bound)


def pass_seconds(
    model: Architecture, units: float, tokens: float, gpus: int, assumed: Assumptions
) -> float:
    """Seconds of so many model-pass units over so many tokens."""
    return units * model.parameters * tokens / (gpus * assumed.mfu * assumed.device.flops)


@dataclass(frozen=True)
class TrainingWorkload:
    """What a training consists of, as far as its time goes.

    Attributes:
        steps: Updates.
        update: Size of one, at the mean length of a response.
        cap: Longest response, in tokens.
        generates: Whether it samples responses; SFT takes those of the pool.
        needs: Models besides the student that the objective reads: teacher, anchor, reference.
        kfac: Blocks g and share s of the tokens; None without K-FAC.
        recompute: Whether the backward pass makes the blocks' activations again.
    """

    steps: int
    update: UpdateSize
    cap: int
    generates: bool
    needs: Collection[str]
    kfac: tuple[int, float] | None
    recompute: bool


def update_units(model: Architecture, training: TrainingWorkload) -> UpdateUnits:
    """Units of one update, by the paper's rule: 2 forward, 4 backward, and K-FAC as it is counted.

    `teacher` holds pi_0's pass too, where a method has one.
    """
    kfac = None
    if training.kfac is not None:
        kfac = kfac_units(model, training.update, *training.kfac, share_inputs=True).total
    return UpdateUnits(
        student=FORWARD + BACKWARD,
        teacher=(FORWARD * training.update.teacher_ratio if "teacher" in training.needs else 0.0)
        + (FORWARD if "reference" in training.needs else 0.0),
        anchor=FORWARD if "anchor" in training.needs else None,
        kfac=kfac,
    )


def step_seconds(
    model: Architecture,
    training: TrainingWorkload,
    trainers: int,
    inference: int,
    assumed: Assumptions,
) -> tuple[float, float]:
    """Seconds of one step: of generating, and of the update that waits for it.

    The anchor's pass runs on the inference GPUs, while they wait for the longest response or for
    the next step, and costs no time of its own; without inference GPUs it is part of the update.

    Args:
        model: The architecture.
        training: What the training consists of.
        trainers: Training GPUs.
        inference: Inference GPUs; with 0 the training GPUs generate.
        assumed: The GPU and what is taken for granted.
    """
    units = update_units(model, training)
    on_trainers = (
        RECOMPUTE * training.recompute + units.total - ((units.anchor or 0.0) if inference else 0.0)
    )
    update = pass_seconds(model, on_trainers, training.update.total, trainers, assumed)
    if not training.generates:
        return 0.0, update
    # A step waits for its longest response; the rollouts of a step fit beside the anchor.
    longest = replace(assumed, length=1.0)
    sequences = training.update.sequences
    generated = decoding(model, sequences, training.cap, inference or trainers, longest)
    return generated.seconds, update


def training_hours(
    model: Architecture,
    training: TrainingWorkload,
    trainers: int,
    inference: int,
    assumed: Assumptions,
) -> float:
    """Wall-clock hours of a training."""
    return training.steps * sum(step_seconds(model, training, trainers, inference, assumed)) / HOUR
