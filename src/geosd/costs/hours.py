"""Hours of a study before it is run: a roofline, and what finished jobs took.

Decoding reads all weights and the caches of all sequences once a token, so it is bound by the
memory's bandwidth unless very many sequences are decoded side by side. Passes over whole sequences
are bound by operations. Both get a share of what the data sheet promises. Left out are the start
of an engine, moving weights to it (`weight_sync_hours` reckons that apart), grading, and what is
measured for the log.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from geosd.costs.assumptions import Assumptions
from geosd.costs.memory_and_disk import BF16, memory_of_kv_token
from geosd.costs.update_operations import (
    BACKWARD,
    FORWARD,
    UpdateUnits,
    forward_units,
    kfac_units,
    muon_units,
)
from geosd.costs.workload import ModelWorkload, SamplingWorkload, TrainingWorkload, WorkloadGpus
from geosd.models.architectures import Architecture, architecture
from geosd.provenance.manifest import DamagedManifestError, read_manifest

HOUR = 3600.0
LINK = 50e9
"""Bytes a second between GPUs that weights are reckoned with: a port of 400 Gb/s between nodes.
NVLink within one has nine times as many."""
RECOMPUTE = FORWARD
"""Units of the forward pass that checkpointed blocks make again in the backward pass."""


def decoding_seconds(
    model: Architecture, sampling: SamplingWorkload, gpus: int, assumed: Assumptions
) -> float:
    """Seconds of sampling responses on GPUs that share the model; one starts when another ends.

    Each question is read once, for all of its samples (vLLM's prefix cache). A call of the sampler
    ends with its last response, which is taken to be a longest one that is decoded alone.

    Raises:
        ValueError: The weights leave no room for one sequence.
    """
    tokens = assumed.length * sampling.cap
    context = assumed.prompt + tokens / 2  # in the mean, over the steps of a response
    weights = BF16 * model.parameters
    cache = memory_of_kv_token(model) * context
    room = int((gpus * assumed.usable_bytes - weights) // cache)
    concurrent = min(sampling.sequences, assumed.concurrent, room)
    if concurrent < 1:
        raise ValueError(
            f"{model.label} leaves no room for a response on {gpus} {assumed.device.label}.\n"
            "Hint: ask for more GPUs in params.yaml, section resources."
        )
    bandwidth = assumed.bandwidth_share * assumed.device.bandwidth
    # forward_units takes a sequence's length, whose tokens meet half of it in the mean.
    units = concurrent * model.parameters * forward_units(model, 2 * context)
    token = max((weights + concurrent * cache) / bandwidth, units / assumed.flops)
    seconds = sampling.sequences * tokens / concurrent * token
    seconds += sampling.calls * sampling.cap * weights / bandwidth
    seconds += sampling.prompts * assumed.prompt * FORWARD * model.parameters / assumed.flops
    return seconds / gpus


def update_hours_units(model: Architecture, training: TrainingWorkload) -> UpdateUnits:
    """Model-pass units of a training's update, from which its seconds follow.

    By the paper's rule: 2 forward, 4 backward, and K-FAC or Muon as it is counted.
    `teacher` holds pi_0's pass too, where a method has one.
    """
    kfac = None
    if training.kfac is not None:
        g, s, _ = training.kfac
        kfac = kfac_units(model, training.update, g, s, share_inputs=True).total
    ratio = training.update.teacher_ratio
    teacher = ratio * ("teacher" in training.needs) + (1 + ratio) * training.purified
    return UpdateUnits(
        student=FORWARD + BACKWARD,
        teacher=FORWARD * (teacher + ("reference" in training.needs)),
        anchor=FORWARD if "anchor" in training.needs else None,
        kfac=kfac,
        muon=muon_units(model, training.update) if training.muon else None,
    )


def step_seconds(
    model: Architecture, training: TrainingWorkload, request: WorkloadGpus, assumed: Assumptions
) -> tuple[float, float]:
    """Seconds of one training step: of generating, and of the update that waits for it.

    The anchor's pass runs on the inference GPUs, while they wait for the longest response or for
    the next step, and costs no time of its own; without inference GPUs it is part of the update,
    and the training GPUs generate.
    """
    units = update_hours_units(model, training)
    on_trainers = RECOMPUTE * training.recompute + units.total
    if request.inference:
        on_trainers -= units.anchor or 0.0
    operations = on_trainers * model.parameters * training.update.total
    update = operations / (request.trainers * assumed.flops)
    if not training.generates:
        return 0.0, update
    # A step waits for its longest response; the rollouts of a step fit next to the anchor.
    rollouts = SamplingWorkload(training.update.sequences, training.cap)
    gpus = request.inference or request.trainers
    longest = replace(assumed, length=1.0)
    return decoding_seconds(model, rollouts, gpus, longest), update


class WeightSyncHours(NamedTuple):
    """What the weights of a step take on their way to vLLM: bytes, and seconds."""

    bytes: float
    seconds: float


def weight_sync_hours(
    model: Architecture, request: WorkloadGpus, assumed: Assumptions
) -> WeightSyncHours:
    """The weights' way from several GPUs to the one that samples, and there to the engine.

    On the card they are packed, copied out of the shared buffer and loaded: read and written three
    times. One GPU that does all of a training has the second part of the way alone.
    """
    nbytes = BF16 * model.parameters
    between = nbytes / LINK if request.gpus > 1 else 0.0
    on_card = 6 * nbytes / (assumed.bandwidth_share * assumed.device.bandwidth)
    return WeightSyncHours(nbytes, between + on_card)


def job_hours(work: ModelWorkload, rule: str, assumed: Assumptions) -> float | None:
    """Wall-clock hours of one job of a rule; of a training, the mean over the variants.

    None of rules that ask for no GPU, or that take minutes (states, alignment).
    """
    request = work.gpu_requests[rule]
    if not request.gpus:
        return None
    model = architecture(work.model)
    sampled = {"pool": work.pool, "evaluate": work.evaluation, "evaluate_pi_0": work.evaluation}
    if rule == "train":
        seconds = []
        for training in work.trainings.values():
            sampling, update = step_seconds(model, training, request, assumed)
            seconds.append(training.steps * (sampling + update))
        return fmean(seconds) / HOUR
    if rule in sampled:
        return decoding_seconds(model, sampled[rule], request.gpus, assumed) / HOUR
    return None


class HoursRow(NamedTuple):
    """Jobs, GPUs and hours of one rule for one model, a row of a study's plan.

    `jobs` are to run. `reckoned` are the roofline's hours of a job (`job_hours`); `measured` the
    mean hours of the `done` jobs that have a manifest.
    """

    model: str
    rule: str
    jobs: int
    gpus: int
    reckoned: float | None
    done: int
    measured: float | None

    @property
    def off(self) -> float | None:
        """Measured hours over reckoned ones; None where one of them is not there."""
        return self.measured / self.reckoned if self.measured and self.reckoned else None


def hours_rows(
    work: ModelWorkload,
    jobs: Mapping[str, int],
    measured: Mapping[str, Sequence[float]],
    assumed: Assumptions,
) -> list[HoursRow]:
    """The plan of a model, rule by rule, from jobs that are to run and hours of finished ones."""
    rows = []
    for rule, to_run in jobs.items():
        gpus = work.gpu_requests[rule].gpus
        hours = measured.get(rule, ())
        mean = fmean(hours) if hours else None
        reckoned = job_hours(work, rule, assumed)
        rows.append(HoursRow(work.model, rule, to_run, gpus, reckoned, len(hours), mean))
    return rows


def likely_hours(rows: Sequence[HoursRow]) -> list[float | None]:
    """Hours of a job of each row: measured, else reckoned times how far off its rule was elsewhere.

    None where neither is known. How far off is the mean over the models with finished jobs, 1
    where none is.
    """
    factors: dict[str, list[float]] = {}
    for row in rows:
        if row.off:
            factors.setdefault(row.rule, []).append(row.off)
    return [
        row.measured or (row.reckoned and row.reckoned * fmean(factors.get(row.rule) or [1.0]))
        for row in rows
    ]


def hours_in_results(results: Path | str, model: str, rule: str) -> list[float]:
    """Hours of all finished jobs of a rule and a model below a folder of results, of any study."""
    pi_0 = rule == "evaluate_pi_0"
    folder = Path(results, "evaluate" if pi_0 else rule)
    found = []
    for path in sorted([*folder.glob(f"{model}-*"), *folder.glob(f"{model}/*/*")]):
        if rule.startswith("evaluate") and path.parent.name.startswith("pi_0-") != pi_0:
            continue
        with suppress(DamagedManifestError):  # absent, or not whole
            found.append(read_manifest(path)["wall_s"] / HOUR)
    return found


def measured_hours(jobs: Mapping[str, Sequence[Any]]) -> dict[str, dict[str, list[float]]]:
    """Hours of finished jobs (folder -> rule, model) by their manifests: model -> rule -> hours."""
    measured: dict[str, dict[str, list[float]]] = {}
    for folder, (rule, *of_rule) in jobs.items():
        if rule in ("data", "early_stop"):
            continue
        with suppress(DamagedManifestError):  # absent, or not whole
            seconds = read_manifest(Path(folder))["wall_s"]
            measured.setdefault(of_rule[0], {}).setdefault(rule, []).append(seconds / HOUR)
    return measured
