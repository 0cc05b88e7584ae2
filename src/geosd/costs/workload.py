"""Work of a study's jobs, and on how many GPUs."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from geosd.costs.update_operations import UpdateOperationsSize


class WorkloadGpus(NamedTuple):
    """The GPUs that a job of a workload asks for; `inference` of a training's only generate."""

    gpus: int
    inference: int = 0

    @property
    def trainers(self) -> int:
        """How many of a training's GPUs train."""
        return self.gpus - self.inference


class SamplingWorkload(NamedTuple):
    """Responses that a job samples, and the longest there can be, in tokens.

    `prompts` are the questions that they answer; `calls` of the sampler wait for one another.
    """

    sequences: int
    cap: int
    prompts: int = 0
    calls: int = 0


class KfacWorkload(NamedTuple):
    """K-FAC of a planned training: blocks g, share s of the tokens, and type of its factors."""

    blocks: int
    subsample: float
    storage: str


class LoraWorkload(NamedTuple):
    """LoRA of a planned training: the rank of its matrices, and the projections that have them."""

    rank: int
    targets: tuple[str, ...]


@dataclass(frozen=True)
class TrainingWorkload:
    """Parts of a planned training, as far as its time and memory go.

    `update` is at the mean length of a response; `cap` is the longest in tokens. `needs` are the
    models besides the student that the objective reads: teacher, anchor, reference. SFT, which
    takes responses of the pool, does not generate. `muon`: the projections are trained by Muon, and
    have no second moments. `purified`: pi_0 reads each response twice more, for the teacher of that
    name. `whole_vocabulary`: there is no K. The others are keys of `training`.
    """

    steps: int
    update: UpdateOperationsSize
    cap: int
    generates: bool
    needs: Collection[str]
    kfac: KfacWorkload | None
    recompute: bool
    chunk: int
    microbatch: int
    lora: LoraWorkload | None = None
    muon: bool = False
    purified: bool = False
    whole_vocabulary: bool = False


class StoredWeightsWorkload(NamedTuple):
    """Files of weights that a model's runs leave: bytes a parameter, how many, how many of a run.

    `waiting` of them other studies have yet to read.
    """

    bytes: int
    files: int
    of_run: int
    waiting: int = 0


@dataclass(frozen=True)
class ModelWorkload:
    """Work of one model's jobs in a study; jobs and GPUs by rule, trainings by variant."""

    model: str
    jobs: Mapping[str, int]
    gpu_requests: Mapping[str, WorkloadGpus]
    pool: SamplingWorkload
    evaluation: SamplingWorkload
    trainings: Mapping[str, TrainingWorkload]
    stored: StoredWeightsWorkload
