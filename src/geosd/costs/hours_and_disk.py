"""Hours and disk of a study, by operations and by bytes moved (a roofline), before it is run.

Decoding reads all weights and the caches of all sequences once a token, so it is bound by the
memory's bandwidth unless very many sequences are decoded side by side. Passes over whole sequences
are bound by operations. Both get a share of what the data sheet promises. Left out are the start
of an engine, moving weights to it, prefill, grading, and what is measured for the log:
`training.diagnose_every`, and the rollouts after the last step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from geosd.costs.training_memory import BF16, kv_bytes
from geosd.costs.update_operations import BACKWARD, FORWARD, UpdateUnits, forward_units, kfac_units
from geosd.costs.workload import (
    Assumptions,
    GpuRequest,
    ModelWorkload,
    SamplingWorkload,
    TrainingWorkload,
)
from geosd.models.published_architectures import Architecture, architecture

HOUR = 3600.0
RECOMPUTE = FORWARD
"""Units of the forward pass that checkpointed blocks make again in the backward pass."""
STUDENT_AND_TEACHER = 5.0
"""Units of looking at states: a forward pass of the student, one of the teacher on more tokens."""
REFERENCE = "qwen3-8b"
"""The model whose hours the paper gives (Appendix Runtime)."""
SIMILAR_RULE = {"evaluate_pi_0": "evaluate", "states": "pool", "alignment": "train"}
"""Rules whose hours the paper does not give, and the rule that does the like."""
TEXT_BYTES = 4
"""Bytes of a token as text, about: English and formulas under the paper's tokenizers."""


def decoding_seconds(
    model: Architecture, sampling: SamplingWorkload, gpus: int, assumed: Assumptions
) -> float:
    """Seconds of decoding responses on GPUs that share the model; one starts when another ends.

    Raises:
        ValueError: The weights leave no room for one sequence.
    """
    tokens = assumed.length * sampling.cap
    context = assumed.prompt + tokens / 2  # in the mean, over the steps of a response
    weights = BF16 * model.parameters
    cache = kv_bytes(model) * context
    room = int((gpus * assumed.usable_bytes - weights) // cache)
    concurrent = min(sampling.sequences, assumed.concurrent, room)
    if concurrent < 1:
        raise ValueError(
            f"{model.label} leaves no room for a response on {gpus} {assumed.device.label}.\n"
            "Hint: ask for more GPUs in params.yaml, section resources."
        )
    moved = (weights + concurrent * cache) / (assumed.bandwidth_share * assumed.device.bandwidth)
    # forward_units takes a sequence's length, whose tokens meet half of it in the mean.
    units = concurrent * model.parameters * forward_units(model, 2 * context)
    counted = units / (assumed.mfu * assumed.device.flops)
    return sampling.sequences * tokens / concurrent * max(moved, counted) / gpus


def _pass_seconds(
    model: Architecture, units: float, tokens: float, gpus: int, assumed: Assumptions
) -> float:
    """Seconds of so many model-pass units over so many tokens."""
    return units * model.parameters * tokens / (gpus * assumed.mfu * assumed.device.flops)


def training_update_units(model: Architecture, training: TrainingWorkload) -> UpdateUnits:
    """Model-pass units of a training's update, from which its seconds follow.

    By the paper's rule: 2 forward, 4 backward, and K-FAC as it is counted.
    `teacher` holds pi_0's pass too, where a method has one.
    """
    kfac = None
    if training.kfac is not None:
        g, s, _ = training.kfac
        kfac = kfac_units(model, training.update, g, s, share_inputs=True).total
    teacher = training.update.teacher_ratio * ("teacher" in training.needs)
    return UpdateUnits(
        student=FORWARD + BACKWARD,
        teacher=FORWARD * (teacher + ("reference" in training.needs)),
        anchor=FORWARD if "anchor" in training.needs else None,
        kfac=kfac,
    )


def step_seconds(
    model: Architecture, training: TrainingWorkload, request: GpuRequest, assumed: Assumptions
) -> tuple[float, float]:
    """Seconds of one training step: of generating, and of the update that waits for it.

    The anchor's pass runs on the inference GPUs, while they wait for the longest response or for
    the next step, and costs no time of its own; without inference GPUs it is part of the update,
    and the training GPUs generate.
    """
    units = training_update_units(model, training)
    on_trainers = RECOMPUTE * training.recompute + units.total
    if request.inference:
        on_trainers -= units.anchor or 0.0
    update = _pass_seconds(model, on_trainers, training.update.total, request.trainers, assumed)
    if not training.generates:
        return 0.0, update
    # A step waits for its longest response; the rollouts of a step fit beside the anchor.
    rollouts = SamplingWorkload(training.update.sequences, training.cap)
    gpus, longest = request.inference or request.trainers, replace(assumed, length=1.0)
    return decoding_seconds(model, rollouts, gpus, longest), update


def job_hours(work: ModelWorkload, rule: str, assumed: Assumptions) -> float:
    """Wall-clock hours of one job of a rule; of a training, the mean over the variants."""
    model, request = architecture(work.model), work.gpu_requests[rule]
    if rule == "train":
        each = [
            training.steps * sum(step_seconds(model, training, request, assumed)) / HOUR
            for training in work.trainings.values()
        ]
        return sum(each) / len(each)
    tokens = work.states.sequences * work.states.cap * assumed.length
    scoring = _pass_seconds(model, STUDENT_AND_TEACHER, tokens, request.gpus, assumed)
    if rule == "alignment":
        return work.checkpoints * scoring / HOUR
    sampling = {"pool": work.pool, "states": work.states}.get(rule, work.evaluation)
    seconds = decoding_seconds(model, sampling, request.gpus, assumed)
    return (seconds + (scoring if rule == "states" else 0.0)) / HOUR


class PlanRow(NamedTuple):
    """Jobs, GPUs and hours of one rule for one model, a row of a study's plan.

    `roofline_hours` are those of a job, `expected_hours` the same times the paper's share
    (`paper_hours_ratio`); None without GPU.
    """

    model: str
    rule: str
    jobs: int
    gpus: int
    roofline_hours: float | None
    expected_hours: float | None

    def gpu_hours(self, *, expected: bool) -> float:
        """GPU-hours of all jobs of a rule, by the roofline or as expected from the paper's."""
        hours = self.expected_hours if expected else self.roofline_hours
        return self.jobs * self.gpus * (hours or 0.0)


def plan_rows(
    work: ModelWorkload, ratios: Mapping[str, float], assumed: Assumptions
) -> list[PlanRow]:
    """The plan of a model: jobs, GPUs and hours of each rule.

    Expected hours are the roofline's times the rule's ratio (`paper_hours_ratio`).
    """
    rows = []
    for rule, jobs in work.jobs.items():
        gpus, roofline, expected = work.gpu_requests[rule].gpus, None, None
        if gpus:
            roofline = job_hours(work, rule, assumed)
            expected = roofline * ratios[SIMILAR_RULE.get(rule, rule)]
        rows.append(PlanRow(work.model, rule, jobs, gpus, roofline, expected))
    return rows


def paper_hours_ratio(
    reference: ModelWorkload, variant: str, published: Mapping[str, float], assumed: Assumptions
) -> dict[str, float]:
    """The paper's GPU-hours of an 8B job over those of the roofline, by rule.

    A training, an evaluation and the pool of the paper's own protocol on the GPUs that this project
    asks for at 8B, against the GPU-hours that the paper gives. The quotient holds all that the
    roofline leaves out, and what is not known of the paper's runs: how many GPUs, how long the
    responses were (here as `assumed` says, at most the cap), which software.

    Args:
        reference: The paper's protocol on `REFERENCE`.
        variant: The training that the paper's hours are of: a baseline.
        published: Rule -> the paper's GPU-hours of an 8B job.
        assumed: What is taken for granted; the GPU is the paper's all the same.
    """
    baseline = replace(reference, trainings={variant: reference.trainings[variant]})
    on_h200 = replace(assumed, gpu="h200")
    return {
        rule: gpu_hours / (reference.gpu_requests[rule].gpus * job_hours(baseline, rule, on_h200))
        for rule, gpu_hours in published.items()
    }


def disk_bytes(work: ModelWorkload, assumed: Assumptions) -> tuple[float, float, float]:
    """Bytes that one model's jobs keep on disk: weights, samples, resume states.

    Returns:
        All fp32 weights that are kept; all evaluated samples as text; the two resume states of one
        training while it runs, each of weights, two moments, anchor.
    """
    n = architecture(work.model).parameters
    evaluations = sum(work.jobs.get(rule, 0) for rule in ("evaluate", "evaluate_pi_0"))
    tokens = work.evaluation.sequences * work.evaluation.cap * assumed.length
    return 4 * n * work.weights, TEXT_BYTES * tokens * evaluations, 2 * 16 * n
