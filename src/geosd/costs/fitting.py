"""Whether a study's jobs fit a GPU, and which is the smallest that holds them.

Trainers are held to the share of a GPU that is planned with. vLLM takes a share of the whole GPU:
`rollout.memory` where models of a job lie beside it, .9 where it is alone.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from geosd.costs.assumptions import GPUS, Assumptions
from geosd.costs.gpu_memory import inference_gpu_memory, total_gpu_memory, training_gpu_memory
from geosd.costs.memory_and_disk import BF16, FP32, memory_of_kv_token
from geosd.costs.workload import ModelWorkload, TrainingWorkload, WorkloadGpus
from geosd.models.architectures import Architecture, architecture

ALONE = 0.9
"""Share of a GPU that vLLM takes where it is alone."""
OF_ENGINE = ("weights that sample", "KV cache")
"""Parts of an inference GPU's memory that lie in vLLM's share."""


class FittingEngineShare(NamedTuple):
    """How vLLM is placed: its share of a GPU beside other models, and how many share a model."""

    memory: float
    devices: int


class FittingGpu(NamedTuple):
    """The smallest memory, in bytes, of a GPU that holds its part of a job; `gpus` have such parts.

    Trainers and workers of a training are two parts.
    """

    part: str
    gpus: int
    bytes: float


def fitting_gpus(
    work: ModelWorkload, share: FittingEngineShare, assumed: Assumptions
) -> list[FittingGpu]:
    """What the GPUs of a model's jobs must have, for each kind of job that asks for any."""
    shape, needs = architecture(work.model), []
    request = work.gpu_requests["train"]
    if request.gpus and work.trainings:
        each = [_training(shape, one, request, share, assumed) for one in work.trainings.values()]
        trainers, workers = (max(column) for column in zip(*each, strict=True))
        needs.append(FittingGpu("trainer", request.trainers, trainers))
        if request.inference:
            needs.append(FittingGpu("worker", request.inference, workers))
    caps = {"pool": work.pool.cap, "evaluate": work.evaluation.cap}
    sampling = [rule for rule in caps if rule in work.jobs and work.gpu_requests[rule].gpus]
    if sampling:
        cap = max(caps[rule] for rule in sampling)
        least = _engine(shape, 1, cap, share.devices, assumed) / ALONE
        gpus = max(work.gpu_requests[rule].gpus for rule in sampling)
        needs.append(FittingGpu(", ".join(sampling), gpus, least))
    if "states" in work.jobs and work.gpu_requests["states"].gpus and work.trainings:
        training = next(iter(work.trainings.values()))
        surveyed = _states(shape, training, share, assumed)
        needs.append(FittingGpu("states", work.gpu_requests["states"].gpus, surveyed))
    return needs


def _engine(
    model: Architecture, sequences: int, cap: int, devices: int, assumed: Assumptions
) -> float:
    """Bytes of vLLM on each of its devices: weights, and the caches of responses at the cap."""
    cache = sequences * (assumed.prompt + cap) * memory_of_kv_token(model)
    return (BF16 * model.parameters + cache) / devices


def _training(
    model: Architecture,
    training: TrainingWorkload,
    request: WorkloadGpus,
    share: FittingEngineShare,
    assumed: Assumptions,
) -> tuple[float, float]:
    """Memory of a GPU that trains, and of one that samples and scores (0 where none is apart)."""
    trainer = (
        total_gpu_memory(training_gpu_memory(model, training, request, assumed)) / assumed.usable
    )
    if not request.inference:
        return trainer, 0.0
    engine = _engine(model, training.update.sequences, training.cap, share.devices, assumed)
    parts = inference_gpu_memory(model, training, request, assumed)
    scoring = total_gpu_memory(part for part in parts if part.name not in OF_ENGINE)
    return trainer, max(engine / share.memory, scoring / (1 - share.memory))


def _states(
    model: Architecture, training: TrainingWorkload, share: FittingEngineShare, assumed: Assumptions
) -> float:
    """Memory of a GPU that surveys states: the engine, and pi_0 with two models' logits."""
    engine = _engine(model, 1, training.cap, share.devices, assumed)
    logits = 2 * training.chunk * model.vocabulary * (2 * FP32 + BF16)
    own = BF16 * model.parameters + logits
    return max(engine / share.memory, own / (1 - share.memory))


def smallest_fitting_gpu(need: float) -> str | None:
    """The GPU of least memory that has so many bytes; None where none has."""
    fitting = [(gpu.memory, name) for name, gpu in GPUS.items() if gpu.memory >= need]
    return min(fitting)[1] if fitting else None


def parts_not_fitting(
    needs: Mapping[str, Iterable[FittingGpu]], assumed: Assumptions
) -> list[tuple[str, FittingGpu]]:
    """Parts of each model's jobs that the assumed GPU does not hold."""
    return [
        (model, need)
        for model, of_model in needs.items()
        for need in of_model
        if need.bytes > assumed.device.memory
    ]
