"""Memory of a training as the paper counts it, and the most that a study has on disk.

On disk the schedule that is assumed is the rules': a training starts only when no evaluation waits
for a place, and a file of weights goes as soon as the last job that reads it ends, with `keep:
samples`. Then every file of a finished run is being read by a job. So J jobs, T of them trainings,
hold at most the files of J - T readers and of T runs in training.

N = parameters, L = blocks, d = hidden width, V = vocabulary. GB are 10^9 bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from geosd.costs.assumptions import Assumptions
from geosd.costs.update_operations import UpdateOperationsSize, update_projection_sizes
from geosd.costs.workload import ModelWorkload
from geosd.models.architectures import Architecture, architecture
from geosd.optim.factor_sizes import factor_bytes

BF16, FP32 = 2, 4
STATE_BYTES = {"master weights": 4, "gradients": 4, "first moments": 4, "second moments": 4}
"""Bytes a parameter while training, all fp32 (the paper: fp32 master weights, AdamW). With bf16
weights and bf16 gradients with fp32 master weights and moments the sum is the same, 16."""
SNAPSHOT_BYTES = 2
"""Bytes a parameter of the anchor: bf16 weights and nothing else."""
GB = 1e9
TEXT_BYTES = 4
"""Bytes of a token as text, about: English and formulas under the paper's tokenizers."""
STATES = 2
"""States that a training keeps to go on from: the last one, and the one before."""


@dataclass(frozen=True)
class TotalTrainingMemory:
    """Bytes of a model's training state, over all GPUs together.

    `base` is what every method keeps: weights, gradients and moments. `full` are dense fp32
    covariances, which nobody forms, `kfac` blocked ones and their inverses, `snapshot` the anchor.
    """

    base: int
    full: int
    kfac: int
    snapshot: int

    @property
    def extra(self) -> int:
        """Bytes that the method adds: K-FAC and anchor."""
        return self.kfac + self.snapshot

    @property
    def total(self) -> int:
        """All bytes of the training state."""
        return self.base + self.extra

    @property
    def increase(self) -> float:
        """Bytes that the method adds, in percent of what every method keeps."""
        return 100 * self.extra / self.base


def total_training_memory(
    model: Architecture, blocks: int, storage: str, *, share_inputs: bool = False
) -> TotalTrainingMemory:
    """Bytes of a model's training state: weights, gradients, moments, K-FAC factors and anchor.

    `blocks` is the paper's g, `storage` the type of the factors, "float32" or "bfloat16".
    `share_inputs` keeps one A for q, k, v and one for gate, up, as `KFAC` does; the paper counts
    one for each projection.

    Source: the paper, Tables memory_methods and kfac_memory.
    """
    sizes = update_projection_sizes(model)
    return TotalTrainingMemory(
        base=sum(STATE_BYTES.values()) * model.parameters,
        full=factor_bytes(sizes, 1, "float32", share_inputs=False) // 2,
        kfac=factor_bytes(sizes, blocks, storage, share_inputs=share_inputs),
        snapshot=SNAPSHOT_BYTES * model.parameters,
    )


def rounded_memory(row: TotalTrainingMemory) -> tuple[float, float]:
    """Memory of the anchor and all that the method adds, in GB, by the paper's own arithmetic.

    The digits it prints follow if N is first rounded to 0.1 billion (the size in a model's
    description, e.g. 14.8B) and if the terms are added as printed.
    """
    snapshot = SNAPSHOT_BYTES * round(row.snapshot / SNAPSHOT_BYTES / GB, 1)
    return snapshot, round(row.kfac / GB, 1) + snapshot


def memory_of_logits(update: UpdateOperationsSize, entries: int) -> int:
    """Bytes of an update's truncated logits: 2 of a bf16 value, 4 of its index in the vocabulary.

    `entries` are those kept of a state: K, or at most 3 K for the union of three models.
    """
    return update.total * entries * (2 + 4)


def logits_in_memory(model: Architecture, top_k: int | None, models: int = 1) -> int:
    """Most entries that are kept of a state's logits: K of each model, or the whole vocabulary."""
    if top_k is None:
        return model.vocabulary
    return min(models * top_k, model.vocabulary)


class MemoryAndDiskPart(NamedTuple):
    """One part of the memory that a GPU holds: its name, bytes, and their formula in words."""

    name: str
    bytes: float
    formula: str


def memory_of_kv_token(model: Architecture) -> int:
    """Bytes that a token leaves in the KV cache, bf16: 2 L d_kv 2; sliding windows save nothing."""
    return 2 * model.layers * model.keys * BF16


def weights_on_disk(jobs: int, trainings: int, of_reader: float, of_run: float) -> float:
    """Most bytes of weights that are on disk at once while `jobs` run, `trainings` of them at most.

    A job reads at most `of_reader` bytes of weights, and a run leaves `of_run`.
    """
    side_by_side = min(trainings, jobs)
    return (jobs - side_by_side) * of_reader + side_by_side * of_run


def state_bytes(work: ModelWorkload) -> float:
    """Bytes of the states of one training: weights and two moments in fp32, the anchor in bf16.

    K-FAC adds its averages and inverses. Muon's states, with one moment, count as AdamW's.
    """
    model = architecture(work.model)
    factors = [
        factor_bytes(update_projection_sizes(model), training.kfac.blocks, training.kfac.storage)
        for training in work.trainings.values()
        if training.kfac
    ]
    return STATES * ((3 * FP32 + BF16) * model.parameters + max(factors, default=0))


def _sample_bytes(work: ModelWorkload, assumed: Assumptions) -> float:
    """Bytes of the samples of all evaluations."""
    evaluations = sum(work.jobs.get(rule, 0) for rule in ("evaluate", "evaluate_pi_0"))
    tokens = work.evaluation.sequences * work.evaluation.cap * assumed.length
    return TEXT_BYTES * tokens * evaluations


def peak_disk(
    works: Sequence[ModelWorkload], keep: str, jobs: int, trainings: int, assumed: Assumptions
) -> list[MemoryAndDiskPart]:
    """The parts of the most that a study has on disk at once; the largest model counts for any job.

    `keep` is "weights" of every run, or "samples": then weights stay while a job reads them. `jobs`
    run side by side, `trainings` of them at most.
    """
    sizes = {work.model: architecture(work.model).parameters for work in works}
    files = [(work.stored.bytes * sizes[work.model], work.stored) for work in works]
    weights, how = sum(size * stored.files for size, stored in files), "of all runs"
    trainings = min(trainings, jobs, sum(work.jobs.get("train", 0) for work in works))
    if keep == "samples":
        of_run = max(size * stored.of_run for size, stored in files)
        aligned = any("alignment" in work.jobs for work in works)  # reads snapshots, too
        of_reader = of_run if aligned else max(size for size, _ in files)
        held = weights_on_disk(jobs, trainings, of_reader, of_run)
        if held < weights:
            how = f"{jobs - trainings} jobs that read some, {trainings} runs in training"
            weights = held
    base = sum(BF16 * sizes[work.model] * work.jobs.get("base", 0) for work in works)
    states = trainings * max(map(state_bytes, works))
    waiting = sum(size * stored.waiting for size, stored in files)
    return [
        MemoryAndDiskPart("base models", base, "bf16"),
        MemoryAndDiskPart(
            "states to go on from", states, f"{trainings} trainings, {STATES} states each"
        ),
        MemoryAndDiskPart("weights", weights, how),
        MemoryAndDiskPart(
            "samples", sum(_sample_bytes(w, assumed) for w in works), "of all evaluations"
        ),
        MemoryAndDiskPart("weights for other studies", waiting, "until these have read them"),
    ]
