"""What a study will cost: jobs, GPUs and hours, rule by rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from geosd.costs.assumptions import Assumptions
from geosd.costs.roofline import HOUR, TrainingWorkload, decoding, pass_seconds, training_hours
from geosd.costs.update_cost import UpdateSize
from geosd.models.published_architectures import Architecture, architecture

REFERENCE = "qwen3-8b"
"""The model whose hours the paper gives (Appendix Runtime)."""
BENCHMARKS = {"aime24": 30, "aime25": 30, "amc23": 40, "math500": 500}
"""Problems of the whole benchmarks."""
STUDENT_AND_TEACHER = 5.0
"""Units of looking at states: a forward pass of the student, one of the teacher on more tokens."""
SIMILAR_RULE = {"evaluate_pi_0": "evaluate", "states": "pool", "alignment": "train"}
"""Rules whose hours the paper does not give, and the rule that does the like."""


@dataclass(frozen=True)
class GpuRequest:
    """The GPUs that a job of a rule asks for; of a training, those that only generate."""

    gpus: int
    inference: int = 0


@dataclass(frozen=True)
class SamplingWorkload:
    """Responses to sample: how many, and the longest there can be, in tokens."""

    sequences: int
    cap: int


@dataclass(frozen=True)
class ModelWorkload:
    """What the jobs of one model do.

    Attributes:
        model: Its name.
        jobs: Jobs by rule.
        gpu_requests: GPUs by rule.
        pool: What the pool samples.
        evaluation: What one evaluation samples.
        trainings: What each variant's training consists of.
        states: Rollouts that are looked at.
        checkpoints: Checkpoints that an alignment looks at.
        weights: Weights that are kept: the base model's, the runs', and their snapshots.
    """

    model: str
    jobs: Mapping[str, int]
    gpu_requests: Mapping[str, GpuRequest]
    pool: SamplingWorkload
    evaluation: SamplingWorkload
    trainings: Mapping[str, TrainingWorkload]
    states: SamplingWorkload
    checkpoints: int
    weights: int


@dataclass(frozen=True)
class PlanRow:
    """The jobs of one rule for one model.

    Attributes:
        model: The model.
        rule: The rule.
        jobs: How many.
        gpus: GPUs of each.
        roofline_hours: Hours of each by the roofline, in the mean; None without GPU.
        expected_hours: The same, times what the paper's own 8B hours are of ours.
    """

    model: str
    rule: str
    jobs: int
    gpus: int
    roofline_hours: float | None
    expected_hours: float | None

    def gpu_hours(self, *, expected: bool) -> float:
        """GPU-hours of all jobs."""
        hours = self.expected_hours if expected else self.roofline_hours
        return self.jobs * self.gpus * (hours or 0.0)


def plan_rows(
    work: ModelWorkload, times: Mapping[str, float], assumed: Assumptions
) -> list[PlanRow]:
    """A line for each rule.

    Args:
        work: What the jobs of a model do.
        times: Rule -> the paper's hours in ours (`paper_hours_ratio`).
        assumed: The GPU and what is taken for granted.
    """
    found = []
    for rule, jobs in work.jobs.items():
        gpus = work.gpu_requests[rule].gpus
        roofline_hours = hours(work, rule, assumed) if gpus else None
        expected = (
            roofline_hours * times[SIMILAR_RULE.get(rule, rule)]
            if roofline_hours is not None
            else None
        )
        found.append(PlanRow(work.model, rule, jobs, gpus, roofline_hours, expected))
    return found


def hours(work: ModelWorkload, rule: str, assumed: Assumptions) -> float:
    """Hours of one job of a rule by the roofline; of a training, the mean over the variants."""
    model, asked = architecture(work.model), work.gpu_requests[rule]
    if rule == "train":
        each = [
            training_hours(model, training, asked.gpus - asked.inference, asked.inference, assumed)
            for training in work.trainings.values()
        ]
        return sum(each) / len(each)
    if rule == "alignment":
        looked = work.checkpoints * _scoring_seconds(model, work.states, asked.gpus, assumed)
        return looked / HOUR
    sampled = {"pool": work.pool, "states": work.states}.get(rule, work.evaluation)
    seconds = decoding(model, sampled.sequences, sampled.cap, asked.gpus, assumed).seconds
    if rule == "states":
        seconds += _scoring_seconds(model, work.states, asked.gpus, assumed)
    return seconds / HOUR


def _scoring_seconds(
    model: Architecture, states: SamplingWorkload, gpus: int, assumed: Assumptions
) -> float:
    tokens = states.sequences * states.cap * assumed.length
    return pass_seconds(model, STUDENT_AND_TEACHER, tokens, gpus, assumed)


def paper_hours_ratio(
    reference: ModelWorkload, variant: str, published: Mapping[str, float], assumed: Assumptions
) -> dict[str, float]:
    """How many times our GPU-hours of an 8B job the paper's are, by rule.

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
    only = replace(reference, trainings={variant: reference.trainings[variant]})
    theirs = replace(assumed, gpu="h200")
    return {
        rule: gpu_hours / (reference.gpu_requests[rule].gpus * hours(only, rule, theirs))
        for rule, gpu_hours in published.items()
    }


@dataclass(frozen=True)
class DiskUsage:
    """Bytes on disk of one model's jobs.

    Attributes:
        weights: All weights that are kept, fp32 as trained: 4 N each.
        samples: All evaluated samples, as text.
        resuming: The resume state of one training while it runs: weights, two moments, anchor.
    """

    weights: float
    samples: float
    resuming: float


TEXT_BYTES = 4
"""Bytes of a token as text, about: English and formulas under the paper's tokenizers."""


def disk(work: ModelWorkload, assumed: Assumptions) -> DiskUsage:
    """What one model's jobs keep on disk."""
    n = architecture(work.model).parameters
    evaluations = sum(work.jobs.get(rule, 0) for rule in ("evaluate", "evaluate_pi_0"))
    tokens = work.evaluation.sequences * work.evaluation.cap * assumed.length
    return DiskUsage(4 * n * work.weights, TEXT_BYTES * tokens * evaluations, 16 * n)


def update_size(sequences: int, cap: int, assumed: Assumptions) -> UpdateSize:
    """The size of an update whose responses have their mean length."""
    return UpdateSize(sequences, round(assumed.length * cap))
