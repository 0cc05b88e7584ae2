"""The most that a study has on disk at once, from how many jobs run side by side.

The schedule that is assumed is the rules': a training starts only when no evaluation waits for a
place, and a file of weights goes as soon as the last job that reads it ends (`keep: samples`).
Then every file of a finished run is being read by a job. So J jobs, T of them trainings, hold at
most the files of J - T readers and of T runs in training.
"""

from collections.abc import Sequence

from geosd.costs.training_memory import BF16, FP32, MemoryPart
from geosd.costs.update_operations import projection_sizes
from geosd.costs.workload import Assumptions, ModelWorkload
from geosd.models.architectures import architecture
from geosd.optim.kfac_memory import factor_bytes

TEXT_BYTES = 4
"""Bytes of a token as text, about: English and formulas under the paper's tokenizers."""
STATES = 2
"""States that a training keeps to go on from: the last one, and the one before."""


def weights_side_by_side(jobs: int, trainings: int, of_reader: float, of_run: float) -> float:
    """Most bytes of weights that are on disk at once while `jobs` run, `trainings` of them at most.

    A job reads at most `of_reader` bytes of weights, and a run leaves `of_run`.
    """
    side_by_side = min(trainings, jobs)
    return (jobs - side_by_side) * of_reader + side_by_side * of_run


def state_bytes(work: ModelWorkload) -> float:
    """Bytes of the states of one training: weights and two moments in fp32, the anchor in bf16.

    K-FAC adds its averages and inverses.
    """
    model = architecture(work.model)
    factors = [
        factor_bytes(projection_sizes(model), training.kfac.blocks, training.kfac.storage)
        for training in work.trainings.values()
        if training.kfac
    ]
    return STATES * ((3 * FP32 + BF16) * model.parameters + max(factors, default=0))


def sample_bytes(work: ModelWorkload, assumed: Assumptions) -> float:
    """Bytes of the samples of all evaluations."""
    evaluations = sum(work.jobs.get(rule, 0) for rule in ("evaluate", "evaluate_pi_0"))
    tokens = work.evaluation.sequences * work.evaluation.cap * assumed.length
    return TEXT_BYTES * tokens * evaluations


def peak_disk(
    works: Sequence[ModelWorkload], keep: str, jobs: int, trainings: int, assumed: Assumptions
) -> list[MemoryPart]:
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
        held = weights_side_by_side(jobs, trainings, of_reader, of_run)
        if held < weights:
            how = f"{jobs - trainings} jobs that read some, {trainings} runs in training"
            weights = held
    base = sum(BF16 * sizes[work.model] * work.jobs.get("base", 0) for work in works)
    states = trainings * max(map(state_bytes, works))
    waiting = sum(size * stored.waiting for size, stored in files)
    return [
        MemoryPart("base models", base, "bf16"),
        MemoryPart("states to go on from", states, f"{trainings} trainings, {STATES} states each"),
        MemoryPart("weights", weights, how),
        MemoryPart("samples", sum(sample_bytes(w, assumed) for w in works), "of all evaluations"),
        MemoryPart("weights for other studies", waiting, "until these have read them"),
    ]
