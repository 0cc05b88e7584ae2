"""The schema of the protocol's section `training`: recipe and optimiser."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from geosd.config.objective_schema import HYPERPARAMETERS, Objective
from geosd.config.schema_base import (
    Count,
    Decay,
    Distinct,
    Rate,
    Section,
    Share,
    Temperature,
    WeightDecay,
    WholeNumber,
    at_most,
)


class Kfac(Section):
    """Protocol section `training.optimiser.kfac`: curvature. Appendix "Kronecker factorization"."""

    blocks: Count
    """Diagonal blocks g of each factor. Table hparams: 16 up to 8B, 32 at 14B and 32B."""
    decay: Decay
    """Decay of the factors' moving averages, bias corrected. Not given; .95 as in kfac-jax and
    kfac-pytorch."""
    damping: Annotated[float, Field(ge=1e-10, le=1e6)]
    """Damping gamma; each factor is damped by its square root. Table hparams: 10^-3."""
    subsample: Share
    """Share of the non-padding positions that enter the factors. Table hparams: 1/8."""
    inverse_every: Count
    """Steps between two factorisations. Not given; 1, because blocks are small."""
    per_token: bool
    """Whether G is made of the gradients of single tokens' losses, or of the mean loss as
    backpropagated, which are smaller by the number of tokens. Not given; docs/reading.md."""
    storage: Literal["float32", "bfloat16"]
    """Type in which factors are stored. Appendix: float32 up to 8B, bfloat16 at 14B and 32B."""


class Optimiser(Section):
    """Protocol section `training.optimiser`: the update rule."""

    rule: Literal["adamw", "kfac"]
    """AdamW for all baselines, K-FAC natural gradient for GeoSD. Table hparams."""
    inner: Literal["adamw", "plain"]
    """What takes the preconditioned gradient: AdamW, or a plain step (the paper's formula taken
    literally). Not given; adamw, because the paper's memory table includes Adam's moments."""
    kfac: Kfac
    """Read only where the rule is kfac."""


class Recipe(Section):
    """Protocol section `training`, which all methods share. Appendix "Training", Table hparams."""

    steps: Count
    """Optimiser steps. Table hparams: 625 (5 epochs)."""
    problems: Annotated[int, Field(gt=0, le=1024)]
    """Problems in a step, one rollout each. Appendix "Training": 8."""
    group: Annotated[int, Field(gt=0, le=1024)]
    """Rollouts on the one problem of a GRPO step. Table hparams: G = 8."""
    temperature: Temperature
    """Sampling temperature of rollouts. Appendix "Training": 1.0."""
    response_tokens: Count
    """Longest rollout, in tokens. Table hparams: 4096."""
    learning_rate: Rate
    """Peak learning rate. Table hparams: 1 x 10^-6."""
    betas: tuple[Decay, Decay]
    """Decays of AdamW's two moments. Table hparams: .9, .95."""
    weight_decay: WeightDecay
    """Decoupled weight decay. Not given; 0, because none is mentioned."""
    warmup: Annotated[WholeNumber, at_most("steps")]
    """Steps of linear warm-up. Table hparams: 20."""
    precision: Literal["auto", "bfloat16", "float32"]
    """Type of the forward and backward passes; master weights are float32. `auto` is bfloat16 where
    the device has instructions for it (CUDA, AVX512-BF16, AMX); the manifest says which it was.
    Table hparams: bfloat16."""
    storage: Literal["float32", "bfloat16"]
    """Type in which final weights and snapshots are stored; the states that a run continues from
    are float32 either way. Not given; bfloat16, in which the checkpoints are sampled."""
    top_k: Count
    """Logits K kept of student, teacher and anchor each; the union is renormalised. Table hparams:
    1024."""
    anchor_every: Count
    """Steps K_ckpt between two refreshes of the anchor theta_ckpt. Table hparams: 64."""
    loss_mean: Literal["sequence", "token"]
    """What the loss is a mean over: positions within a sequence and then sequences (the 1/T inside
    the expectation of the paper's L_distil), or all positions of the step."""
    privilege: Annotated[float, Field(ge=0, le=1)]
    """Share of the solution that the teacher sees. The default context is a full solution: 1."""
    teacher: Literal["live", "fixed", "delayed", "average"]
    """Which weights the teacher has: the student's own (Method, "the current student"), pi_0's, the
    anchor's, or a moving average of the student's. The paper names all four and uses the first."""
    teacher_decay: Decay
    """Decay, in a step, of a teacher that is an average. Not given; read by that teacher only."""
    save_every: Count
    """Steps between two saves of the resume state. Not given; a matter of the cluster."""
    max_skipped_steps: WholeNumber
    """Steps whose loss, gradient or K-FAC factors are not finite that a run may have: each is
    skipped and changes no weight; one more ends the run. Not given."""
    snapshots: Annotated[tuple[Count, ...], Distinct, at_most("steps")]
    """Steps after which the student's weights are kept, for figures over checkpoints; the last step
    always is. Which ones the paper takes is not given."""
    diagnose_every: Count
    """Steps between two measurements that cost extra forward passes, such as the drift from pi_0.
    Not given."""
    final_rollouts: Count
    """Rollouts of the trained student, one each to so many training problems, on which drift,
    overlap and support are measured after the last step. Not given."""
    chunk: Count
    """Response positions whose logits are held at once. Not given; a matter of memory, not of the
    result."""
    microbatch: Count | None
    """Responses that a process takes through the models at once; null takes all that it has. The
    update is one of the whole step either way. Not given; a matter of memory."""
    recompute: bool
    """Whether the backward pass makes each block's activations anew instead of keeping them. Not
    given; a matter of memory."""
    optimiser: Optimiser
    """The update rule."""


class Training(Recipe):
    """Protocol section `training` of one variant: the shared recipe, and its objective."""

    objective: Objective  # type: ignore[valid-type]
    """The variant's loss, with its hyperparameters."""

    @model_validator(mode="after")
    def _read_together(self) -> Training:
        """Refuse a hyperparameter that the objective, with its other ones, does not read."""
        given = self.objective.model_dump(exclude_unset=True)
        declared_here = HYPERPARAMETERS[given["name"]]
        values = {one.name: given.get(one.name, one.default) for one in declared_here}
        for one in declared_here:
            if problem := one.conflict(values):
                raise ValueError(f"objective.{one.name} is {values[one.name]!r}; {problem}")
        return self
