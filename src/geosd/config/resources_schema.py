"""The schema of `resources` in params.yaml: what the jobs of each rule ask a cluster for."""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import Field, model_validator

from geosd.config.overlays import overlay_of
from geosd.config.schema_base import (
    ExtendableSchema,
    SectionSchema,
    optional_schema,
    schema_at_most,
)

Gpus = Annotated[int, Field(ge=0, le=64)]


class JobResources(SectionSchema):
    """The resources of one job: GPUs, memory, time; docs/cluster.md says what a retry asks for."""

    gpus: Gpus
    """GPUs, on one node but for `nodes`; how many CPU cores come with each is the site's matter."""
    mem_mb: Annotated[int, Field(ge=100, le=2 * 10**7)]
    """Main memory of a node, in MB."""
    minutes: Annotated[int, Field(gt=0, le=60 * 24 * 60)]
    """Longest run time, in minutes. A site may cut it into several submissions."""
    threads: Annotated[int, Field(gt=0, le=1024)] = optional_schema(1)
    """Most CPU threads of the job. Jobs that a study has side by side share the machine's cores:
    docs/performance.md, "Threads"."""

    def pieces(self, max_minutes: int) -> int:
        """How often a job is submitted to be done, where one takes `max_minutes` at most."""
        return math.ceil(self.minutes / max_minutes)


class TrainingResources(JobResources):
    """The resources of a training job."""

    inference_gpus: Annotated[Gpus, schema_at_most("gpus")]
    """Those of the GPUs that generate rollouts and score the anchor; the optimiser's state is
    sharded over the others. 0 leaves both to all of them. Appendix "Hardware": inference workers
    and training workers; how many is not given."""

    nodes: Annotated[int, Field(gt=0, le=64)] = optional_schema(1)
    """Nodes that the GPUs lie on, equally many on each; inference_gpus lie on the last one."""

    @property
    def gpus_per_node(self) -> int:
        """GPUs of a training job on each of its nodes."""
        return self.gpus // self.nodes

    @property
    def trainers(self) -> int:
        """Processes that share the optimiser's state and the responses of a step."""
        return max(1, self.gpus - self.inference_gpus)

    @property
    def processes(self) -> int:
        """Processes of a training job: one on each GPU."""
        return max(1, self.gpus)

    @property
    def placement(self) -> str:
        """A training job's option of step `train`: how many processes sample for the others."""
        return f"--workers {self.inference_gpus}"

    @model_validator(mode="after")
    def _placed(self) -> TrainingResources:
        if self.gpus and self.inference_gpus == self.gpus:
            raise ValueError(f"inference_gpus is {self.gpus}, all of gpus; at least one must train")
        if self.gpus % self.nodes or (self.nodes > 1 and not self.gpus):
            raise ValueError(f"{self.gpus} gpus do not lie equally on {self.nodes} nodes")
        if self.inference_gpus > self.gpus_per_node:
            raise ValueError(
                f"inference_gpus is {self.inference_gpus}, more than the {self.gpus_per_node} GPUs"
                " of one node; the sampler shares a model out within a node"
            )
        return self


class _JobsOfModel(SectionSchema):
    """The resources of one model's jobs, rule by rule. Not in the paper."""

    base: JobResources
    pool: JobResources
    train: TrainingResources
    evaluate: JobResources
    """Rules evaluate and evaluate_pi_0."""
    states: JobResources
    alignment: JobResources

    def job(self, rule: str) -> JobResources:
        """The resources of one rule's jobs."""
        return getattr(self, "evaluate" if rule == "evaluate_pi_0" else rule)


class ModelResources(ExtendableSchema, _JobsOfModel):
    """An entry of `resources` in params.yaml: what a model's jobs ask for. Not in the paper."""


StudyResources = overlay_of(_JobsOfModel)
"""What a study's jobs of a model ask for in place of what its entry of `resources` says."""
